"""What a pipeline schedule is made of: actions, what each needs and makes. Pure.

Pure integers, no torch. A schedule is a list of actions per stage: `schedule[stage]`. Stage r of p
keeps model chunks r, p + r, 2p + r, ... of the model: chunk number c on stage r is *global stage*
c·p + r. A forward makes an "output" for the next global stage; a backward, or its input half, makes
a "gradient" for the one before. `pipeline_schedules` has the schedules themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
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


class Product(NamedTuple):
    """What a stage makes of a micro-batch with a chunk: an "output", or a "gradient"."""

    stage: int
    kind: str
    micro_batch: int
    chunk: int


def makes(action: Action, stage: int) -> Product | None:
    """The product of `action` on `stage`; nobody waits for that of a backward_weight."""
    kind = PRODUCTS.get(action.kind)
    return Product(stage, kind, action.micro_batch, action.chunk) if kind else None


def incoming(action: Action, stage: int, num_stages: int, last: int) -> Product | None:
    """What `action` on `stage` needs of another global stage, of which `last` is the last one."""
    kind = PRODUCTS.get(action.kind)
    before = action.chunk * num_stages + stage + (-1 if kind == "output" else 1)
    if kind is None or not 0 <= before <= last:
        return None
    return Product(before % num_stages, kind, action.micro_batch, before // num_stages)


def receiver(product: Product, num_stages: int, last: int) -> int | None:
    """The stage that needs a product of another global stage; None when none does."""
    after = product.chunk * num_stages + product.stage + (1 if product.kind == "output" else -1)
    return after % num_stages if 0 <= after <= last else None


def needs(action: Action, stage: int, num_stages: int, last: int) -> list[Product]:
    """All that must be made before `action` on `stage`."""
    own = {"forward": None, "backward_weight": "gradient"}.get(action.kind, "output")
    found = [Product(stage, own, action.micro_batch, action.chunk)] if own else []
    other = incoming(action, stage, num_stages, last)
    return [*found, other] if other else found


def messages(schedule: Schedule) -> Iterator[tuple[Product, int]]:
    """Every product that travels, with the stage that receives it, in the order of the sends."""
    size = len(schedule), last_global_stage(schedule)
    for stage, actions in enumerate(schedule):
        for product in filter(None, (makes(action, stage) for action in actions)):
            to = receiver(product, *size)
            if to not in (None, stage):
                yield product, to


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
    size = len(schedule), last_global_stage(schedule)
    queues = [deque(actions) for actions in schedule]
    made: set[Product | None] = set()
    while any(queues):
        went_on = False
        for stage, queue in enumerate(queues):
            while queue and made.issuperset(needs(queue[0], stage, *size)):
                action = queue.popleft()
                made.add(makes(action, stage))
                went_on = True
                yield stage, action
        if not went_on:
            raise ScheduleError(_blocked(schedule, queues, made))


def _blocked(schedule: Schedule, queues: list[deque], made: set) -> str:
    stage = next(s for s, queue in enumerate(queues) if queue)
    action = queues[stage][0]
    number = len(schedule[stage]) - len(queues[stage]) + 1
    missing = [
        f"the {product.kind} of micro-batch {product.micro_batch} on stage {product.stage}"
        for product in needs(action, stage, len(schedule), last_global_stage(schedule))
        if product not in made
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
        kinds_of: dict[tuple[int, int], set[str]] = {piece: set() for piece in pieces}
        for number, action in enumerate(actions, 1):
            if action.kind not in KINDS:
                known = ", ".join(KINDS)
                raise ScheduleError(f"stage {stage}, action {number}: no kind of {known}: {action}")
            kinds = kinds_of[action.micro_batch, action.chunk]
            if action.kind in kinds:
                raise ScheduleError(f"stage {stage}, action {number}: {action} is there twice")
            kinds.add(action.kind)
        for piece, kinds in kinds_of.items():
            if kinds not in (_WHOLE, _SPLIT):
                raise ScheduleError(
                    f"stage {stage} does {', '.join(sorted(kinds)) or 'nothing'} for micro-batch "
                    f"{piece[0]}, chunk {piece[1]}: each needs one forward and one backward, whole "
                    "or as backward_input and backward_weight"
                )
