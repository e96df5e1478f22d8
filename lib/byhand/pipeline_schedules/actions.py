"""What a pipeline schedule is made of: actions, what each needs and makes. Pure.

Pure integers, no torch. A schedule is a list of actions per stage: `schedule[stage]`, and the route
of a micro-batch through the stages, see `routes`. A forward makes an "output" for the next global
stage; a backward, or its input half, makes a "gradient" for the one before. `orders` has the
schedules themselves.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from byhand.pipeline_schedules.routes import Route, loop

KINDS = ("forward", "backward", "backward_input", "backward_weight")
PRODUCTS = {"forward": "output", "backward": "gradient", "backward_input": "gradient"}


class Action(NamedTuple):
    """One piece of work of one stage: a kind of KINDS, for one micro-batch and model chunk.

    >>> print(Action("forward", 2), Action("backward_weight", 0))
    forward 2 backward_weight 0
    """

    kind: str
    micro_batch: int
    chunk: int = 0

    def __str__(self) -> str:
        chunk = f" of chunk {self.chunk}" if self.chunk else ""
        return f"{self.kind} {self.micro_batch}{chunk}"


Actions = Sequence[Sequence[Action]]  # of every stage, in its order: a schedule


class Schedule(list):
    """A list of actions for each stage, and `route`, where that is no loop.

    A plain list of lists is a schedule too: a loop of as many chunks as its actions name.

    >>> order = [("forward", 0), ("forward", 1), ("backward", 1), ("backward", 0)]
    >>> schedule = Schedule([[Action(kind, 0, chunk) for kind, chunk in order]], route=[0, 0])
    >>> simulate(schedule).seconds
    6.0
    """

    def __init__(self, stages: Iterable[Sequence[Action]], route: Sequence[int]):
        super().__init__(stages)
        self.route = Route(route)


class ScheduleError(ValueError):
    """A schedule that cannot run; the message names the first impossible action.

    >>> check([[Action("forward", 0)], [Action("forward", 0), Action("backward", 0)]])
    Traceback (most recent call last):
        ...
    byhand.pipeline_schedules.actions.ScheduleError: stage 0 does forward for micro-batch 0,
        chunk 0: each needs one forward and one backward, whole or as backward_input and
        backward_weight
    """


class Product(NamedTuple):
    """What a global stage makes of a micro-batch: an "output", or a "gradient"."""

    place: int
    kind: str
    micro_batch: int


def route_of(schedule: Actions) -> Route:
    """Its own route, or a loop."""
    if isinstance(schedule, Schedule):
        return schedule.route
    chunks = max((action.chunk for actions in schedule for action in actions), default=0) + 1
    return loop(len(schedule), chunks)


def makes(action: Action, stage: int, route: Route) -> Product | None:
    """The product of `action` on `stage`; nobody waits for that of a backward_weight."""
    kind = PRODUCTS.get(action.kind)
    place = route.place[stage, action.chunk]
    return Product(place, kind, action.micro_batch) if kind else None


def incoming(action: Action, stage: int, route: Route) -> Product | None:
    """What `action` on `stage` needs of another global stage."""
    kind = PRODUCTS.get(action.kind)
    before = route.place[stage, action.chunk] + (-1 if kind == "output" else 1)
    if kind is None or not 0 <= before < len(route):
        return None
    return Product(before, kind, action.micro_batch)


def receiver(product: Product, route: Route) -> int | None:
    """The stage that needs a product of another global stage; None when none does."""
    after = product.place + (1 if product.kind == "output" else -1)
    return route[after] if 0 <= after < len(route) else None


def needs(action: Action, stage: int, route: Route) -> list[Product]:
    """All that must be made before `action` on `stage`."""
    own = {"forward": None, "backward_weight": "gradient"}.get(action.kind, "output")
    place = route.place[stage, action.chunk]
    found = [Product(place, own, action.micro_batch)] if own else []
    other = incoming(action, stage, route)
    return [*found, other] if other else found


def messages(schedule: Actions) -> Iterator[tuple[Product, int]]:
    """Every product that travels, with the stage that receives it, in the order of the sends."""
    route = route_of(schedule)
    for stage, actions in enumerate(schedule):
        for product in filter(None, (makes(action, stage, route) for action in actions)):
            to = receiver(product, route)
            if to not in (None, stage):
                yield product, to


_WHOLE = {"forward", "backward"}
_SPLIT = {"forward", "backward_input", "backward_weight"}


def check(schedule: Actions) -> None:
    """Accept a schedule that runs to its end, and computes everything once.

    Raises:
        ScheduleError: the first action that is unknown, repeated, missing or impossible.

    >>> check([[Action("forward", 0), Action("backward", 0)]])
    >>> check([[Action("backward", 0), Action("forward", 0)]])
    Traceback (most recent call last):
        ...
    byhand.pipeline_schedules.actions.ScheduleError: stage 0 cannot do its action 1,
        backward 0: it needs the output of micro-batch 0 on stage 0, which no stage can make
        before
    """
    _check_complete(schedule)
    for _ in in_order(schedule):
        pass


def in_order(schedule: Actions) -> Iterator[tuple[int, Action]]:
    """(stage, action) pairs, each after all that it needs.

    Raises:
        ScheduleError: no stage can go on; the message names the actions that wait.
    """
    route = route_of(schedule)
    queues = [deque(actions) for actions in schedule]
    made: set[Product | None] = set()
    while any(queues):
        went_on = False
        for stage, queue in enumerate(queues):
            while queue and made.issuperset(needs(queue[0], stage, route)):
                action = queue.popleft()
                made.add(makes(action, stage, route))
                went_on = True
                yield stage, action
        if not went_on:
            raise ScheduleError(_blocked(schedule, queues, made))


def _blocked(schedule: Actions, queues: list[deque], made: set) -> str:
    stage = next(s for s, queue in enumerate(queues) if queue)
    action = queues[stage][0]
    number, route = len(schedule[stage]) - len(queues[stage]) + 1, route_of(schedule)
    missing = [
        f"the {product.kind} of micro-batch {product.micro_batch} on stage {route[product.place]}"
        for product in needs(action, stage, route)
        if product not in made
    ]
    waiting = sum(1 for queue in queues if queue)
    return (
        f"stage {stage} cannot do its action {number}, {action}: it needs {' and '.join(missing)}, "
        f"which {'no stage' if waiting == 1 else 'none of the stages that wait'} can make before"
    )


def _check_complete(schedule: Actions) -> None:
    if not schedule or not all(schedule):
        raise ScheduleError("a schedule has at least one stage, and every stage some action")
    for stage, actions in enumerate(schedule):
        for number, action in enumerate(actions, 1):
            if not all(hasattr(action, name) for name in Action._fields):
                raise ScheduleError(
                    f"stage {stage}, action {number}: {action!r} is no action: write "
                    f"Action({', '.join(Action._fields)})"
                )
    route, batches = route_of(schedule), {a.micro_batch for actions in schedule for a in actions}
    if set(route) != set(range(len(schedule))):
        raise ScheduleError(
            f"a schedule of {len(schedule)} stages visits each of them, 0 to {len(schedule) - 1}, "
            f"and no other: its route is {', '.join(map(str, route))}"
        )
    missing = next(number for number in itertools.count() if number not in batches)
    if missing < len(batches):
        other = next(number for number in sorted(batches) if not 0 <= number < missing)
        raise ScheduleError(
            f"no stage has an action of micro-batch {missing}, but there are some of {other}: "
            "micro-batches are numbered from 0 on, and none is left out"
        )
    for stage, actions in enumerate(schedule):
        chunks = route.count(stage)
        places = [(i, c) for i in sorted(batches) for c in range(chunks)]
        kinds_of: dict[tuple[int, int], set[str]] = {place: set() for place in places}
        for number, action in enumerate(actions, 1):
            here = f"stage {stage}, action {number}"
            if action.kind not in KINDS:
                raise ScheduleError(f"{here}: no kind of {', '.join(KINDS)}: {action}")
            if not 0 <= action.chunk < chunks:
                raise ScheduleError(f"{here}: {action}, but the route comes by {chunks} times")
            kinds = kinds_of[action.micro_batch, action.chunk]
            if action.kind in kinds:
                raise ScheduleError(f"{here}: {action} is there twice")
            kinds.add(action.kind)
        _check_kinds(stage, kinds_of)


def _check_kinds(stage: int, kinds_of: dict[tuple[int, int], set[str]]) -> None:
    for (micro_batch, chunk), kinds in kinds_of.items():
        if kinds not in (_WHOLE, _SPLIT):
            raise ScheduleError(
                f"stage {stage} does {', '.join(sorted(kinds)) or 'nothing'} for micro-batch "
                f"{micro_batch}, chunk {chunk}: each needs one forward and one backward, whole "
                "or as backward_input and backward_weight"
            )
