"""A scheduler that finds a schedule under a limit on memory, instead of writing one down. Pure.

Greed alone is short-sighted. So look ahead: at every choice try the other actions too, play each to
its end greedily (`drafts`), and follow the best one; or several good ones, side by side.

The problem is that of Qi et al. 2023, arXiv:2401.10241, section 3. To judge a choice by its greedy
end is a rollout (Bertsekas, Tsitsiklis and Wu 1997, "Rollout algorithms for combinatorial
optimization").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from byhand.pipeline_schedules.actions import Schedule, ScheduleError
from byhand.pipeline_schedules.drafts import Draft
from byhand.pipeline_schedules.routes import Route
from byhand.pipeline_schedules.simulation import Seconds, seconds_by_kind
from byhand.words import counted


def find(
    route: Sequence[int],
    num_micro_batches: int,
    most_in_flight: int,
    forward: Seconds = 1.0,
    backward_input: Seconds = 1.0,
    backward_weight: Seconds = 1.0,
    send: float | Callable[[int, int], float] = 0.0,
    width: int = 2,
) -> Schedule:
    """A short schedule in which no stage holds more than `most_in_flight` chunks' micro-batches.

    Seconds and send: as in `simulate`, for one global stage. Of two schedules the one that ends
    first is better; of equal ones, that of the shorter period. width: how many beginnings are
    followed side by side; 0 gives the greedy schedule.

    Raises:
        ScheduleError: so few in flight that one micro-batch does not fit; or no micro-batch.

    >>> schedule = find(loop(4), num_micro_batches=8, most_in_flight=4)
    >>> simulate(schedule).idle_seconds, simulate(one_forward_one_backward(4, 8)).idle_seconds
    ([3.0, 3.0, 3.0, 3.0], [9.0, 9.0, 9.0, 9.0])
    """
    route = Route(route)
    chunks = max(map(route.count, route))
    if num_micro_batches < 1 or most_in_flight < chunks:
        raise ScheduleError(
            f"{most_in_flight} in flight, {num_micro_batches} micro-batches: there is at least one,"
            f" and a stage of {counted(chunks, 'chunk')} holds as many, one micro-batch's"
        )
    seconds = seconds_by_kind(len(route), forward, backward_input, backward_weight)
    start = Draft(route, num_micro_batches, most_in_flight, seconds, send)
    return look_ahead(start, width).schedule()


def look_ahead(start: Draft, width: int) -> Draft:
    """The best end that is met where so many beginnings are followed side by side."""
    best = start.finished()  # as greedy ends it
    beam = [(best.score(), start, best)]
    while beam:
        tried = [child for one in beam for child in _children(*one)]  # one choice more
        beam = _best_first(tried)[:width]
        best = min([best, *(end for _, _, end in beam)], key=Draft.score)
    return best


def _best_first(tried: list[tuple]) -> list[tuple]:
    """Without those that differ from a better one in the order of decisions alone."""
    tried = sorted(tried, key=lambda child: child[0])
    unlike = {draft.key(): (score, draft, end) for score, draft, end in tried[::-1]}
    return sorted(unlike.values(), key=lambda child: child[0])


def _children(score: tuple, draft: Draft, end: Draft) -> Iterator[tuple]:
    """(score, draft, greedy end) after each choice; `end`, that of `draft`, is the first one's."""
    options = draft.next()
    for option in options:
        child = draft.twin()
        child.do(option)
        if option is options[0]:
            until = child.free[child.route[option[3]]]
            yield score, child, end
        elif option[0] < until:
            finished = child.finished()
            yield finished.score(), child, finished
