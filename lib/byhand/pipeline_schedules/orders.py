"""Pipeline schedules as data: who computes what, in which order. Pure.

A schedule is a list of actions per stage: `schedule[stage] -> list[Action]`. The same object is
checked (`check`), timed on paper (`simulate`), drawn (`figures.schedule`) and executed
(`pipeline_parallel`). Which stage keeps which part of the model is its route, see `routes`.

    schedule          idle time per stage        most in flight on stage r
    gpipe             (p-1)(F + B)               m
    1F1B              (p-1)(F + B)               min(p - r, m)
    interleaved       (p-1)(F + B) / v           min(2(p-r-1) + (v-1)p + 1, v·m) chunks
    breadth_first     (p-1)(F + B) / v           v·m chunks
    zero_bubble_h1    (p-1)(F + B_input - W) †   p
    zero_bubble_h2    (p-1)F, or 0 *             2p - 1
    zero_bubble_v     (p-1)F / 2, or 0 *         2p chunks
    dual_pipe_v       (p-1)F / 2                 2p + 1 chunks

p stages, m micro-batches, v chunks per stage; F one forward of a whole stage, B = B_input + W one
backward; the last three for F = B_input = W and m of 2p or more. * 0 where no stage waits at the
end of a step for the others (`Timeline.period`). † for m of p or more, and a W that is no longer
than F and B_input: of a longer one only as much as the shorter of these fills idle time.
Sources: Huang et al. 2019 (GPipe); Narayanan et al. 2021 (1F1B, interleaved); Lamy-Poirier 2022
(breadth-first, arXiv:2211.05953); Qi et al. 2023 (zero bubble, arXiv:2401.10241), sections 2 and 6;
DeepSeek-AI 2024 (DualPipe, arXiv:2412.19437), its V form as torch orders it.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral

from byhand.pipeline_schedules.actions import Action, Schedule, ScheduleError
from byhand.pipeline_schedules.routes import there_and_back

WORDS = {"F": "forward", "B": "backward", "I": "backward_input"}


def gpipe(num_stages: int, num_micro_batches: int) -> list[list[Action]]:
    """All forwards, then all backwards.

    >>> [str(action) for action in gpipe(2, 3)[1]]
    ['forward 0', 'forward 1', 'forward 2', 'backward 0', 'backward 1', 'backward 2']
    >>> simulate(gpipe(4, 8)).peak_in_flight
    [8, 8, 8, 8]
    """
    _check_counts(num_stages, num_micro_batches)
    batches = range(num_micro_batches)
    actions = [Action(kind, i) for kind in ("forward", "backward") for i in batches]
    return [list(actions) for _ in range(num_stages)]


def one_forward_one_backward(num_stages: int, num_micro_batches: int) -> list[list[Action]]:
    """Stage r runs p - r - 1 forwards ahead, then one forward and one backward in turn.

    >>> [str(action) for action in one_forward_one_backward(2, 3)[0]]
    ['forward 0', 'forward 1', 'backward 0', 'forward 2', 'backward 1', 'backward 2']
    >>> simulate(one_forward_one_backward(4, 8)).peak_in_flight
    [4, 3, 2, 1]
    """
    _check_counts(num_stages, num_micro_batches)
    forwards = [Action("forward", i) for i in range(num_micro_batches)]
    backwards = [Action("backward", i) for i in range(num_micro_batches)]
    return [_in_turn(forwards, backwards, num_stages - r - 1) for r in range(num_stages)]


def interleaved(num_stages: int, num_micro_batches: int, num_chunks: int) -> list[list[Action]]:
    """1F1B over `num_chunks` model chunks per stage, in groups of p micro-batches.

    Raises:
        ScheduleError: the micro-batches are not a multiple of the stages, as its groups need.

    >>> one = simulate(one_forward_one_backward(4, 8)).idle_fraction
    >>> two = simulate(interleaved(4, 8, num_chunks=2)).idle_fraction
    >>> print(f"{one:.1%} of the step idle, with two chunks {two:.1%}")
    27.3% of the step idle, with two chunks 15.8%
    """
    _check_counts(num_stages, num_micro_batches, num_chunks)
    if num_micro_batches % num_stages:
        raise ScheduleError(
            f"interleaved runs groups of {num_stages} micro-batches, one per stage: "
            f"{num_micro_batches} micro-batches are not a multiple of {num_stages} stages"
        )
    p, v, total = num_stages, num_chunks, num_micro_batches * num_chunks
    order = [(k // (p * v) * p + k % p, k % (p * v) // p) for k in range(total)]
    forwards = [Action("forward", i, c) for i, c in order]
    backwards = [Action("backward", i, v - 1 - c) for i, c in order]
    ahead = [2 * (p - r - 1) + (v - 1) * p for r in range(p)]
    return [_in_turn(forwards, backwards, ahead[r]) for r in range(p)]


def breadth_first(num_stages: int, num_micro_batches: int, num_chunks: int) -> list[list[Action]]:
    """GPipe over `num_chunks` model chunks: all forwards of a chunk, then all of the next one.

    Each chunk's weights are used in one go, and its gradients are complete early: what sharded data
    parallelism asks for. Backwards run from the last micro-batch to the first, as torch has them.

    >>> [str(action) for action in breadth_first(2, 2, num_chunks=2)[0][:4]]
    ['forward 0', 'forward 1', 'forward 0 of chunk 1', 'forward 1 of chunk 1']
    """
    _check_counts(num_stages, num_micro_batches, num_chunks)
    order = [(i, c) for c in range(num_chunks) for i in range(num_micro_batches)]
    actions = [Action("forward", i, c) for i, c in order]
    actions += [Action("backward", i, c) for i, c in reversed(order)]
    return [list(actions) for _ in range(num_stages)]


def zero_bubble_h1(num_stages: int, num_micro_batches: int) -> list[list[Action]]:
    """1F1B with each backward split in two: the weight's half fills what would be idle time.

    Stage r puts its weight gradients off by r micro-batches, so that every stage holds p, and the
    gradient that the stage before waits for goes out B_input, not B, after it came.

    >>> plain, split = one_forward_one_backward(4, 8), zero_bubble_h1(4, 8)
    >>> [simulate(schedule).idle_seconds for schedule in (plain, split)]
    [[9.0, 9.0, 9.0, 9.0], [3.0, 3.0, 3.0, 3.0]]
    >>> simulate(split).peak_in_flight
    [4, 4, 4, 4]
    """
    return _zero_bubble(num_stages, num_micro_batches, 1)


def zero_bubble_h2(num_stages: int, num_micro_batches: int) -> list[list[Action]]:
    """The same with twice the forwards ahead, and weight gradients put off by twice as many.

    Every stage then has something to do from its first action to its last one, and holds 2p - 1.

    >>> for schedule in (zero_bubble_h1(4, 12), zero_bubble_h2(4, 12)):
    ...     print(simulate(schedule).period, simulate(schedule).peak_in_flight)
    39.0 [4, 4, 4, 4]
    36.0 [7, 7, 7, 7]
    """
    return _zero_bubble(num_stages, num_micro_batches, 2)


def zero_bubble_v(num_stages: int, num_micro_batches: int) -> Schedule:
    """Two chunks per stage on a V, so that the gradient is at home as soon as it is at stage 0.

    No idle time within a stage's own span, with the 2p chunks in flight that 1F1B's stage 0 holds.

    >>> schedule = zero_bubble_v(4, 8)
    >>> schedule.route, simulate(schedule).peak_in_flight
    ((0, 1, 2, 3, 3, 2, 1, 0), [8, 8, 8, 8])
    """
    _check_counts(num_stages, num_micro_batches)
    p, m = num_stages, num_micro_batches
    full = max(m, 2 * p - 1)  # what fills the pipeline; fewer leave gaps in the same order
    stages = []
    for r in range(p):
        words = ["F0"] * (2 * (p - r) - 1) + ["F1", "F0"] * r + ["F1", "I1", "W1"] * (p - r)
        words += ["F0", "I0", "W0", "F1", "I1", "W1"] * (full - p)
        words += ["I0", "I1"] * r + ["I0", "W0"] * (p - r) + ["W1"] * r + ["W0"] * r
        stages.append([action for action in _numbered(words) if action.micro_batch < m])
    return Schedule(stages, there_and_back(p))


def dual_pipe_v(num_stages: int, num_micro_batches: int) -> Schedule:
    """Two chunks per stage on a V; a forward and a whole backward stand side by side.

    On GPUs each such pair runs as one, so that the messages of experts (lecture 14) in the one hide
    behind the products of the other; here the forward comes first. Backwards are whole, but for
    those that other stages wait for at both ends.

    Raises:
        ScheduleError: fewer micro-batches than 2p: its beginning and its end would overlap.

    >>> simulate(dual_pipe_v(4, 8)).peak_in_flight, simulate(dual_pipe_v(4, 8)).idle_fraction
    ([9, 9, 9, 9], 0.058823529411764705)
    >>> dual_pipe_v(4, 6)
    Traceback (most recent call last):
        ...
    byhand.pipeline_schedules.actions.ScheduleError: dual_pipe_v fills 4 stages with 8
        micro-batches, two per stage, and has 6
    """
    _check_counts(num_stages, num_micro_batches)
    p, m = num_stages, num_micro_batches
    if m < 2 * p:
        raise ScheduleError(
            f"dual_pipe_v fills {p} stages with {2 * p} micro-batches, two per stage, and has {m}"
        )
    stages = []
    for r in range(p):
        words = ["F0"] * (2 * (p - r - 1)) + ["F0", "F1"] * (r + 1)
        words += ["I1", "W", "F1"] * (p - r - 1)
        words += ["F0", "B1", "F1", "B0"] * (m - 2 * p + r + 1) + ["B1", "F1", "B0"] * (p - r - 1)
        words += (["B1", "B0"] * (r + 1))[: r + 1] + (["I1", "I0"] * (r + 1))[r + 1 :]
        words += ["W", "I0"] * (p - r - 1) + ["W"] * (r + 1)
        stages.append(list(_numbered(words)))
    return Schedule(stages, there_and_back(p))


def _numbered(words: list[str]) -> Iterator[Action]:
    """Actions of words such as "F1", a forward of chunk 1: each takes its next micro-batch.

    "W" is the weight's half that was put off the longest, "W1" of chunk 1.
    """
    done: dict[str, int] = {}  # forwards, and backwards, by chunk
    late: list[Action] = []  # input halves
    for word in words:
        if word[0] == "W":
            action = next(a for a in late if word in ("W", f"W{a.chunk}"))
            late.remove(action)
            yield action._replace(kind="backward_weight")
            continue
        counter = word.replace("I", "B")
        done[counter] = done.get(counter, -1) + 1
        action = Action(WORDS[word[0]], done[counter], int(word[1]))
        late += [action] if word[0] == "I" else []
        yield action


def _zero_bubble(num_stages: int, num_micro_batches: int, depth: int) -> list[list[Action]]:
    """Stage r begins with depth·(p-1-r) more forwards, and puts weights off by depth·r."""
    _check_counts(num_stages, num_micro_batches)
    forwards = [Action("forward", i) for i in range(num_micro_batches)]
    inputs = [Action("backward_input", i) for i in range(num_micro_batches)]
    schedule = []
    for r in range(num_stages):
        actions, late = [], depth * r
        for action in _in_turn(forwards, inputs, depth * (num_stages - r - 1)):
            actions.append(action)
            if action.kind == "backward_input" and action.micro_batch >= late:
                actions.append(Action("backward_weight", action.micro_batch - late))
        left = range(max(0, num_micro_batches - late), num_micro_batches)
        schedule.append(actions + [Action("backward_weight", i) for i in left])
    return schedule


def _check_counts(num_stages: int, num_micro_batches: int, num_chunks: int = 1) -> None:
    counts = {"stages": num_stages, "micro-batches": num_micro_batches, "chunks": num_chunks}
    for name, count in counts.items():
        if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
            raise ScheduleError(f"a pipeline has at least 1 of its {name}, not {count!r}")


def _in_turn(forwards: list[Action], backwards: list[Action], ahead: int) -> list[Action]:
    """`ahead` forwards first, then a forward and a backward in turn, then the last backwards."""
    ahead = min(ahead, len(forwards))
    pairs = zip(forwards[ahead:], backwards, strict=False)
    steady = [action for pair in pairs for action in pair]
    return forwards[:ahead] + steady + backwards[len(forwards) - ahead :]
