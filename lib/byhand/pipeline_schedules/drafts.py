"""A schedule half made, and the greedy way to its end. Pure.

Whenever a stage is free, it takes the most urgent action that it could begin: the input's half of a
backward (another stage waits for it), else a forward, else a weight's half. A forward needs room: a
stage keeps free what the later chunks of its micro-batches need, so that none waits for ever.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from byhand.pipeline_schedules.actions import Action, Schedule
from byhand.pipeline_schedules.routes import Route

INPUT, FORWARD, WEIGHT = range(3)  # the more urgent first
NAMES = ("backward_input", "forward", "backward_weight")
Option = tuple[float, int, int, int, int]  # start, kind, rank in its kind, place, micro-batch


class Draft:
    """A schedule half made: what was decided, and what each stage could do next."""

    def __init__(
        self,
        route: Route,
        num_micro_batches: int,
        most_in_flight: int,
        seconds: dict[str, Sequence[float]],
        send: float | Callable[[int, int], float],
    ):
        self.route, self.m, self.limit = route, num_micro_batches, most_in_flight
        self.seconds, self.send = [seconds[name] for name in NAMES], send
        self.later = tuple(route[place + 1 :].count(stage) for place, stage in enumerate(route))
        stages = max(route) + 1
        self.free, self.held = [0.0] * stages, [0] * stages
        # What has all that it needs, from then on.
        self.waiting: list[tuple[Option, ...]] = [()] * stages
        self.options: list[list[Option]] = [[]] * stages
        self.decided: list[Option] = []
        self.offer(0.0, FORWARD, 0, 0)
        self.choices(route[0])

    def offer(self, time: float, kind: int, place: int, i: int) -> None:
        """From `time` on the action can be done."""
        rank = {INPUT: place, FORWARD: -place, WEIGHT: 0}[kind]
        self.waiting[self.route[place]] += ((time, kind, rank, place, i),)

    def choices(self, stage: int) -> None:
        """What the stage could begin, in the order of its micro-batches, the soonest first."""
        free, room, found = self.free[stage], self.limit - self.held[stage], {}
        for ready, kind, rank, place, i in self.waiting[stage]:
            if (kind, rank) not in found and (kind != FORWARD or room > self.later[place]):
                found[kind, rank] = (ready if ready > free else free, kind, rank, place, i)
        self.options[stage] = sorted(found.values())

    def next(self) -> list[Option]:
        """The options of the stage that could begin first; none at the end."""
        return min(filter(None, self.options), default=[])

    def do(self, option: Option) -> None:
        """Decide."""
        start, kind, _, place, i = option
        stage = self.route[place]
        self.decided.append(option)
        self.waiting[stage] = tuple(w for w in self.waiting[stage] if w[1:] != option[1:])
        self.held[stage] += (0, 1, -1)[kind]
        self.free[stage] = end = start + self.seconds[kind][place]
        if kind == INPUT:
            self.offer(end, WEIGHT, place, i)
        elif kind == FORWARD and place == 0 and i + 1 < self.m:
            self.offer(0.0, FORWARD, 0, i + 1)
        to = place + (-1, 1, 0)[kind]
        if to == len(self.route):
            self.offer(end, INPUT, place, i)  # the loss has its gradient
        elif kind != WEIGHT and to >= 0:
            link = stage, self.route[to]
            travel = self.send(*link) if callable(self.send) else self.send
            self.offer(end + travel * (link[0] != link[1]), kind, to, i)
            self.choices(link[1])
        self.choices(stage)

    def twin(self) -> Draft:
        """Another one of the same decisions."""
        other = copy.copy(self)
        for name in ("free", "held", "waiting", "options", "decided"):
            setattr(other, name, getattr(self, name)[:])
        return other

    def finished(self) -> Draft:
        """A twin that has gone on greedily to the end."""
        other = self.twin()
        while options := other.next():
            other.do(options[0])
        return other

    def score(self) -> tuple[float, float, float]:
        """Of a finished one, less is better: its seconds, its period, its stages' ends."""
        begun = {self.route[place]: start for start, _, _, place, _ in reversed(self.decided)}
        period = max(end - begun[stage] for stage, end in enumerate(self.free))
        return round(max(self.free), 9), round(period, 9), round(sum(self.free), 9)

    def key(self) -> tuple:
        """The same for drafts that differ only in the order of decisions."""
        return tuple(self.free), tuple(self.waiting)

    def schedule(self) -> Schedule:
        """What was decided, as actions."""
        stages: list[list[Action]] = [[] for _ in self.free]
        for _, kind, _, place, i in self.decided:
            chunk = self.route[:place].count(self.route[place])
            stages[self.route[place]].append(Action(NAMES[kind], i, chunk))
        return Schedule(stages, self.route)
