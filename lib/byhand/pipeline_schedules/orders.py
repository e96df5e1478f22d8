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

from collections.abc import Callable
from dataclasses import dataclass

from byhand.pipeline_schedules.actions import (
    PRODUCTS,
    Action,
    Schedule,
    ScheduleError,
    check,
    in_order,
    last_global_stage,
    needs,
)

__all__ = [
    "Action",
    "Schedule",
    "ScheduleError",
    "Span",
    "Timeline",
    "check",
    "gpipe",
    "interleaved",
    "one_forward_one_backward",
    "simulate",
    "zero_bubble_h1",
]


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


@dataclass(frozen=True)
class Span:
    """One action of one stage, from `start` to `end` in seconds."""

    stage: int
    action: Action
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """When each action ran: on paper (`simulate`) or in fact (`pipeline_parallel`)."""

    spans: list[Span]
    num_stages: int

    @property
    def seconds(self) -> float:
        """From the first action's start to the last one's end."""
        return max(span.end for span in self.spans) - min(span.start for span in self.spans)

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


def simulate(
    schedule: Schedule,
    forward: float = 1.0,
    backward_input: float = 1.0,
    backward_weight: float = 1.0,
    send: float | Callable[[int, int], float] = 0.0,
) -> Timeline:
    """The schedule on paper: every action of a kind takes as long on every stage and chunk.

    A whole backward takes backward_input + backward_weight; what crosses to another stage arrives
    `send` seconds after it was made, or send(sender, receiver) seconds where boundaries differ;
    stages do not wait for their sends.

    Raises:
        ScheduleError: see `check`.
    """
    check(schedule)
    last = last_global_stage(schedule)

    def travel(sender: int, receiver: int) -> float:
        if sender == receiver:
            return 0.0
        return send(sender, receiver) if callable(send) else send

    costs = {
        "forward": forward,
        "backward_input": backward_input,
        "backward_weight": backward_weight,
        "backward": backward_input + backward_weight,
    }
    made: dict[tuple[int, str, int, int], float] = {}
    free = [0.0] * len(schedule)
    spans = []
    for stage, action in in_order(schedule):
        arrivals = [
            made[other, product, a.micro_batch, a.chunk] + travel(other, stage)
            for other, product, a in needs(action, stage, len(schedule), last)
        ]
        start = max([free[stage], *arrivals])
        free[stage] = end = start + costs[action.kind]
        if action.kind in PRODUCTS:
            made[stage, PRODUCTS[action.kind], action.micro_batch, action.chunk] = end
        spans.append(Span(stage, action, start, end))
    return Timeline(spans, len(schedule))
