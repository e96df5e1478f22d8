"""Pipeline schedules as data: who computes what, in which order. Pure integers, no torch.

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

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

KINDS = ("forward", "backward", "backward_input", "backward_weight")


class Action(NamedTuple):
    """One piece of work of one stage: a kind of KINDS, for one micro-batch and model chunk."""

    kind: str
    micro_batch: int
    chunk: int = 0

    def __str__(self) -> str:
        chunk = f" of chunk {self.chunk}" if self.chunk else ""
        return f"{self.kind} {self.micro_batch}{chunk}"


Schedule = list[list[Action]]


class ScheduleError(ValueError):
    """A schedule that cannot run; the message names the first impossible action."""


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


def needs(action: Action, stage: int, num_stages: int, last: int) -> list[tuple[int, str, Action]]:
    """What must be done before `action` on `stage`, as (stage, product, action of that stage).

    A product is "output" (of a forward) or "gradient" (of a whole backward, or of its input half).
    `last` is the last global stage.
    """
    kind, micro_batch, chunk = action
    here = chunk * num_stages + stage
    if kind == "backward_weight":
        return [(stage, "gradient", action)]
    product = "output" if kind == "forward" else "gradient"
    own = [] if kind == "forward" else [(stage, "output", action)]
    before = here - 1 if kind == "forward" else here + 1
    if not 0 <= before <= last:
        return own
    neighbour = Action(kind, micro_batch, before // num_stages)
    return [*own, (before % num_stages, product, neighbour)]


_WHOLE = {"forward", "backward"}
_SPLIT = {"forward", "backward_input", "backward_weight"}
PRODUCTS = {"forward": "output", "backward": "gradient", "backward_input": "gradient"}


def check(schedule: Schedule) -> None:
    """Accept a schedule that runs to its end, and computes everything once.

    Raises:
        ScheduleError: the first action that is unknown, repeated, missing or impossible.
    """
    _check_complete(schedule)
    for _ in in_order(schedule):
        pass


def in_order(schedule: Schedule) -> Iterator[tuple[int, Action]]:
    """(stage, action) pairs, each after all that it needs.

    Raises:
        ScheduleError: no stage can go on; the message names the actions that wait.
    """
    last = _last_global_stage(schedule)
    queues = [deque(actions) for actions in schedule]
    made: set[tuple[int, str, int, int]] = set()
    while any(queues):
        went_on = False
        for stage, queue in enumerate(queues):
            while queue and all(
                (other, product, a.micro_batch, a.chunk) in made
                for other, product, a in needs(queue[0], stage, len(schedule), last)
            ):
                action = queue.popleft()
                if action.kind in PRODUCTS:
                    made.add((stage, PRODUCTS[action.kind], action.micro_batch, action.chunk))
                went_on = True
                yield stage, action
        if not went_on:
            raise ScheduleError(_blocked(schedule, queues, made, last))


def _blocked(schedule: Schedule, queues: list[deque], made: set, last: int) -> str:
    stage = next(s for s, queue in enumerate(queues) if queue)
    action = queues[stage][0]
    number = len(schedule[stage]) - len(queues[stage]) + 1
    missing = [
        f"the {product} of micro-batch {a.micro_batch} on stage {other}"
        for other, product, a in needs(action, stage, len(schedule), last)
        if (other, product, a.micro_batch, a.chunk) not in made
    ]
    waiting = sum(1 for queue in queues if queue)
    return (
        f"stage {stage} cannot do its action {number}, {action}: it needs {' and '.join(missing)}, "
        f"which {'no stage' if waiting == 1 else 'none of the stages that wait'} can make before"
    )


def _last_global_stage(schedule: Schedule) -> int:
    chunks = max((a.chunk for actions in schedule for a in actions), default=0) + 1
    return len(schedule) * chunks - 1


def _check_complete(schedule: Schedule) -> None:
    if not schedule or not all(schedule):
        raise ScheduleError("a schedule has at least one stage, and every stage some action")
    pieces = sorted({(a.micro_batch, a.chunk) for actions in schedule for a in actions})
    for stage, actions in enumerate(schedule):
        for number, action in enumerate(actions, 1):
            if action.kind not in KINDS:
                known = ", ".join(KINDS)
                raise ScheduleError(f"stage {stage}, action {number}: no kind of {known}: {action}")
            if action in actions[: number - 1]:
                raise ScheduleError(f"stage {stage}, action {number}: {action} is there twice")
        for piece in pieces:
            kinds = {a.kind for a in actions if (a.micro_batch, a.chunk) == piece}
            if kinds not in (_WHOLE, _SPLIT):
                raise ScheduleError(
                    f"stage {stage} does {', '.join(sorted(kinds)) or 'nothing'} for micro-batch "
                    f"{piece[0]}, chunk {piece[1]}: each needs one forward and one backward, whole "
                    "or as backward_input and backward_weight"
                )


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
    send: float = 0.0,
) -> Timeline:
    """The schedule on paper: every action of a kind takes as long on every stage and chunk.

    A whole backward takes backward_input + backward_weight; what crosses to another stage arrives
    `send` seconds after it was made, and stages do not wait for their sends.

    Raises:
        ScheduleError: see `check`.
    """
    check(schedule)
    last = _last_global_stage(schedule)
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
            made[other, product, a.micro_batch, a.chunk] + (send if other != stage else 0.0)
            for other, product, a in needs(action, stage, len(schedule), last)
        ]
        start = max([free[stage], *arrivals])
        free[stage] = end = start + costs[action.kind]
        if action.kind in PRODUCTS:
            made[stage, PRODUCTS[action.kind], action.micro_batch, action.chunk] = end
        spans.append(Span(stage, action, start, end))
    return Timeline(spans, len(schedule))
