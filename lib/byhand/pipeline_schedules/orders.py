"""Pipeline schedules as data: who computes what, in which order. Pure.

A schedule is a list of actions per stage: `schedule[stage] -> list[Action]`. The same object is
checked (`check`), timed on paper (`simulate`), drawn (`figures.schedule`) and executed
(`pipeline_parallel`). Stage r of p keeps model chunks r, p + r, 2p + r, ... of the model: chunk
number c on stage r is *global stage* c·p + r.

    schedule          idle time per stage        most in flight on stage r
    gpipe             (p-1)(F + B)               m
    1F1B              (p-1)(F + B)               min(p - r, m)
    interleaved       (p-1)(F + B) / v           min(2(p-r-1) + (v-1)p + 1, v·m) chunks
    zero_bubble_h1    (p-1)(F + B_input - W)     p

p stages, m micro-batches, v chunks per stage; F one forward of a whole stage, B = B_input + W one
backward. Sources: Huang et al. 2019 (GPipe); Narayanan et al. 2021 (1F1B, interleaved); Qi et al.
2024 (zero bubble, arXiv:2401.10241).
"""

from __future__ import annotations

from byhand.pipeline_schedules.actions import Action, Schedule, ScheduleError


def gpipe(num_stages: int, num_micro_batches: int) -> Schedule:
    """All forwards, then all backwards."""
    _check_counts(num_stages, num_micro_batches)
    batches = range(num_micro_batches)
    actions = [Action(kind, i) for kind in ("forward", "backward") for i in batches]
    return [list(actions) for _ in range(num_stages)]


def one_forward_one_backward(num_stages: int, num_micro_batches: int) -> Schedule:
    """Stage r runs p - r - 1 forwards ahead, then one forward and one backward in turn."""
    _check_counts(num_stages, num_micro_batches)
    forwards = [Action("forward", i) for i in range(num_micro_batches)]
    backwards = [Action("backward", i) for i in range(num_micro_batches)]
    return [_in_turn(forwards, backwards, num_stages - r - 1) for r in range(num_stages)]


def interleaved(num_stages: int, num_micro_batches: int, num_chunks: int) -> Schedule:
    """1F1B over `num_chunks` model chunks per stage, in groups of p micro-batches.

    Raises:
        ScheduleError: the micro-batches are not a multiple of the stages, as its groups need.
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


def zero_bubble_h1(num_stages: int, num_micro_batches: int) -> Schedule:
    """1F1B with each backward split in two: the weight's half fills what would be idle time.

    Stage r puts its weight gradients off by r micro-batches, so that every stage holds p, and the
    gradient that the stage before waits for goes out B_input, not B, after it came.
    """
    _check_counts(num_stages, num_micro_batches)
    batches = range(num_micro_batches)
    schedule = []
    for r in range(num_stages):
        forwards = [Action("forward", i) for i in batches]
        inputs = [Action("backward_input", i) for i in batches]
        actions = []
        for action in _in_turn(forwards, inputs, num_stages - r - 1):
            actions.append(action)
            if action.kind == "backward_input" and action.micro_batch >= r:
                actions.append(Action("backward_weight", action.micro_batch - r))
        late = range(max(0, num_micro_batches - r), num_micro_batches)
        schedule.append(actions + [Action("backward_weight", i) for i in late])
    return schedule


def _check_counts(num_stages: int, num_micro_batches: int, num_chunks: int = 1) -> None:
    counts = {"stages": num_stages, "micro-batches": num_micro_batches, "chunks": num_chunks}
    for name, count in counts.items():
        if type(count) is not int or count < 1:
            raise ScheduleError(f"a pipeline has at least 1 of its {name}, not {count!r}")


def _in_turn(forwards: list[Action], backwards: list[Action], ahead: int) -> list[Action]:
    """`ahead` forwards first, then a forward and a backward in turn, then the last backwards."""
    ahead = min(ahead, len(forwards))
    pairs = zip(forwards[ahead:], backwards, strict=False)
    steady = [action for pair in pairs for action in pair]
    return forwards[:ahead] + steady + backwards[len(forwards) - ahead :]
