"""What a pipeline schedule is made of: actions, what each needs and makes. Pure.

Pure integers, no torch. A schedule is a list of actions per stage: `schedule[stage]`. Stage r of p
keeps model chunks r, p + r, 2p + r, ... of the model: chunk number c on stage r is *global stage*
c·p + r. A forward makes an "output" for the next global stage; a backward, or its input half, makes
a "gradient" for the one before. `pipeline_schedules` has the schedules themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

KINDS = ("forward", "backward", "backward_input", "backward_weight")
PRODUCTS = {"forward": "output", "backward": "gradient", "backward_input": "gradient"}


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


class Message(NamedTuple):
    """A product on its way between stages; `chunk` is the sender's."""

    sender: int
    receiver: int
    product: str
    micro_batch: int
    chunk: int


def outgoing(action: Action, stage: int, num_stages: int, last: int) -> Message | None:
    """What `action` on `stage` makes for another global stage; None when nobody needs it."""
    product = PRODUCTS.get(action.kind)
    after = action.chunk * num_stages + stage + (1 if product == "output" else -1)
    if product is None or not 0 <= after <= last:
        return None
    return Message(stage, after % num_stages, product, action.micro_batch, action.chunk)


def incoming(action: Action, stage: int, num_stages: int, last: int) -> Message | None:
    """What `action` on `stage` needs of another global stage; None when nothing."""
    product = PRODUCTS.get(action.kind)
    before = action.chunk * num_stages + stage - (1 if product == "output" else -1)
    if product is None or not 0 <= before <= last:
        return None
    chunk = before // num_stages
    return Message(before % num_stages, stage, product, action.micro_batch, chunk)


def messages(schedule: Schedule) -> dict[Message, int]:
    """Every message, and the number of the action that makes it on its stage."""
    return _places(schedule, outgoing)


def needed(schedule: Schedule) -> dict[Message, int]:
    """Every message, and the number of the action that needs it on its stage."""
    return _places(schedule, incoming)


def _places(schedule: Schedule, message_of: Callable) -> dict[Message, int]:
    size = len(schedule), last_global_stage(schedule)
    found = {
        message_of(action, stage, *size): number
        for stage, actions in enumerate(schedule)
        for number, action in enumerate(actions)
    }
    return {
        message: number
        for message, number in found.items()
        if message is not None and message.sender != message.receiver
    }


_WHOLE = {"forward", "backward"}
_SPLIT = {"forward", "backward_input", "backward_weight"}


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
    last = last_global_stage(schedule)
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


def last_global_stage(schedule: Schedule) -> int:
    """The number of the last global stage: stages times chunks, less one."""
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
