"""When each action of a schedule runs, on paper: simulate, and the Timeline it gives. Pure.

`pipeline_parallel` records the same Timeline from a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from byhand.pipeline_schedules.actions import (
    Action,
    Actions,
    Product,
    ScheduleError,
    check,
    in_order,
    makes,
    needs,
    receiver,
    route_of,
)


@dataclass(frozen=True)
class Span:
    """One action of one stage, from `start` to `end` in seconds.

    >>> simulate(gpipe(1, 1)).spans[0]
    Span(stage=0, action=Action(kind='forward', micro_batch=0, chunk=0), start=0.0, end=1.0)
    """

    stage: int
    action: Action
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """When each action ran: on paper (`simulate`) or in fact (`pipeline_parallel`).

    >>> timeline = simulate(one_forward_one_backward(2, 4))
    >>> timeline.seconds, timeline.period, timeline.idle_seconds
    (15.0, 15.0, [3.0, 3.0])
    """

    spans: list[Span]
    num_stages: int

    @property
    def seconds(self) -> float:
        """From the first action's start to the last one's end."""
        return max(span.end for span in self.spans) - min(span.start for span in self.spans)

    @property
    def period(self) -> float:
        """From step to step, where no stage waits at a step's end for the others.

        It is the longest time between a stage's own first action and its own last one: the next
        step fits into the corners of this one.
        """
        spans = [[s for s in self.spans if s.stage == r] for r in range(self.num_stages)]
        return max(max(s.end for s in own) - min(s.start for s in own) for own in spans)

    @property
    def idle_seconds(self) -> list[float]:
        """By stage: the time in which it did nothing."""
        busy = [0.0] * self.num_stages
        for span in self.spans:
            busy[span.stage] += span.end - span.start
        return [self.seconds - b for b in busy]

    @property
    def idle_fraction(self) -> float:
        """The share of all the stages' time in which they did nothing."""
        return sum(self.idle_seconds) / (self.num_stages * self.seconds)

    @property
    def peak_in_flight(self) -> list[int]:
        """By stage: the most (micro-batch, chunk) pairs forwarded and not yet wholly backwarded."""
        peaks = [0] * self.num_stages
        held = [0] * self.num_stages
        for span in sorted(self.spans, key=lambda span: span.start):
            if span.action.kind == "forward":
                held[span.stage] += 1
                peaks[span.stage] = max(peaks[span.stage], held[span.stage])
            elif span.action.kind in ("backward", "backward_weight"):
                held[span.stage] -= 1
        return peaks


Seconds = float | Sequence[float]


def simulate(
    schedule: Actions,
    forward: Seconds = 1.0,
    backward_input: Seconds = 1.0,
    backward_weight: Seconds = 1.0,
    send: float | Callable[[int, int], float] = 0.0,
    shared_links: bool = False,
) -> Timeline:
    """The schedule on paper: every action of a kind takes as long, in each part of the model.

    Seconds are one number for all parts, or one for each global stage: a head or an embedding makes
    the last or the first one longer. A whole backward takes backward_input + backward_weight; what
    crosses to another stage arrives `send` seconds after it was made, or send(sender, receiver)
    seconds where boundaries differ; stages do not wait for their sends. With `shared_links` a
    message waits for those sent before it on the link between the two stages.

    Raises:
        ScheduleError: see `check`; or not one number for each global stage.

    >>> timeline = simulate(gpipe(2, 4), forward=1.0, backward_input=1.0, backward_weight=1.0)
    >>> timeline.seconds, timeline.idle_fraction
    (15.0, 0.2)
    >>> simulate(gpipe(2, 4), send=0.5).seconds
    16.0
    """
    check(schedule)
    route = route_of(schedule)
    seconds = seconds_by_kind(len(route), forward, backward_input, backward_weight)
    there: list[dict[Product | None, float]] = [{} for _ in schedule]  # when a stage has a product
    free, link_free = [0.0] * len(schedule), dict[tuple[int, int], float]()
    spans = []
    for stage, action in in_order(schedule):
        start = max([free[stage], *(there[stage][need] for need in needs(action, stage, route))])
        free[stage] = end = start + seconds[action.kind][route.place[stage, action.chunk]]
        spans.append(Span(stage, action, start, end))
        product = makes(action, stage, route)
        there[stage][product] = end
        to = receiver(product, route) if product else None
        if to is not None and to != stage:  # it leaves at once, behind what left before it
            begin = max(end, link_free.get((stage, to), 0.0)) if shared_links else end
            arrival = begin + (send(stage, to) if callable(send) else send)
            there[to][product] = link_free[stage, to] = arrival
    return Timeline(spans, len(schedule))


def seconds_by_kind(num_places: int, *seconds: Seconds) -> dict[str, Sequence[float]]:
    """By kind of action, the seconds in each global stage; given: those of forward and halves.

    Raises:
        ScheduleError: not one number for each.
    """
    each = [some if isinstance(some, Sequence) else [some] * num_places for some in seconds]
    named = dict(zip(("forward", "backward_input", "backward_weight"), each, strict=True))
    for kind, some in named.items():
        if len(some) != num_places:
            raise ScheduleError(
                f"{len(some)} numbers of seconds for {kind}, but the model has {num_places} global "
                "stages: one for each, or a single number for all"
            )
    return {**named, "backward": [sum(pair) for pair in zip(*each[1:], strict=True)]}
