"""How long a training step takes on a machine: simulated, and by a formula. Pure.

    seconds(model, layout, machine, num_sequences)     {part: seconds}    beside a Timeline
    estimate(model, layout, machine, num_sequences)    their sum, by a formula: quick

A stage's turn with a micro-batch computes its parts' operations at the machine's rate, waits for
what tp sends, for what of cp's ring its blocks do not hide, and for ep's all-to-alls. Turns are
put together by the pipeline's schedule, action by action, or by the formula. To the next stage
each rank of tp sends its 1/t of the activations, which are gathered there if they are needed
whole (Megatron's scatter-gather). What a group's messages share with others: byhand.costs.machine.

Gradients are summed while the last micro-batch's backward makes them, or as long after as needed.
Left out: sums and element-wise work, whose bytes a rate of products that was reached has in it;
losses; what overlaps tp's messages.
Source: Narayanan et al. 2021, arXiv:2104.04473, sections 2.2, 3 and 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from byhand.communication_cost.model import AlphaBeta
from byhand.costs.counting import MIXED, State, chunks, crossings, gradients, parameters
from byhand.costs.layout import Layout
from byhand.costs.machine import Machine
from byhand.costs.model import Model, Part
from byhand.pipeline_schedules.actions import Actions
from byhand.pipeline_schedules.orders import interleaved, one_forward_one_backward
from byhand.pipeline_schedules.simulation import simulate


class Turn(NamedTuple):
    """Seconds with one micro-batch, in one direction."""

    computing: float = 0.0
    tp: float = 0.0
    cp: float = 0.0
    ep: float = 0.0


def together(turns: Iterable[Turn]) -> Turn:
    """One after the other."""
    return Turn(*map(sum, zip(Turn(), *turns, strict=True)))


@dataclass(frozen=True)
class Step:
    """A step of a model under a layout on a machine; state: bytes a parameter, as in `held`."""

    model: Model
    layout: Layout
    machine: Machine
    num_sequences: int
    state: State = field(default_factory=lambda: MIXED)

    @cached_property
    def num_micro_batches(self) -> int:
        """Of one replica."""
        return self.layout.num_micro_batches(self.num_sequences)

    @cached_property
    def degrees(self) -> Layout:
        """The layout's degrees and order alone: what ranks' groups depend on."""
        of = self.layout
        return Layout(of.dp, of.tp, of.pp, of.cp, of.ep, of.order)

    @property
    def tokens(self) -> float:
        """Of a micro-batch, on one rank."""
        return self.layout.rows * self.model.num_positions / self.layout.cp

    @property
    def message(self) -> float:
        """Bytes of a micro-batch's activations."""
        return self.tokens * self.model.num_features * self.model.itemsize

    @cached_property
    def turns(self) -> list[tuple[Turn, Turn]]:
        """Forward and backward of a micro-batch through each chunk, in the model's order."""
        p, of = self.layout.pp, {part: self.turn(part) for part in set(self.model.parts)}
        by_stage = [chunks(self.model, self.layout, stage) for stage in range(p)]
        in_order = (by_stage[c % p][c // p] for c in range(p * self.layout.chunks))
        ways = ([of[part] for part in parts] for parts in in_order)
        return [
            (together(there for there, _ in both), together(back for _, back in both))
            for both in ways
        ]

    @cached_property
    def by_stage(self) -> list[Turn]:
        """Forward and backward of a micro-batch through all chunks of each stage."""
        p = self.layout.pp
        return [together(t for both in self.turns[stage::p] for t in both) for stage in range(p)]

    def turn(self, part: Part) -> tuple[Turn, Turn]:
        """Forward and backward of one part."""
        t, again = self.layout.tp, self.layout.recompute
        rate = t * self.machine.rate(self.model.num_features / t) / self.tokens
        whole, square = part.flops / rate, part.square / rate
        reduce, reduce_back = (
            self.crossed("tp", ops) for ops in crossings(part, self.layout.sequence).values()
        )
        visit = self.crossed("ep", {"all_to_all": 2 * part.routed})
        forward = Turn(whole, reduce, self.ring(part, square, 1), visit)
        backward = Turn(2 * whole, reduce_back, self.ring(part, 2 * square, 2), visit)
        if again == "full" and part.half:
            backward = together([backward, forward])
        elif again == "selective":
            backward = together([backward, Turn(square)])
        return forward, backward

    def ring(self, part: Part, square: float, times: float) -> float:
        """Seconds of cp's messages, that many times a block's, which its work does not hide."""
        n = self.layout.cp
        if not part.keys or n == 1:
            return 0.0
        block = 2 * part.keys / self.layout.tp * self.tokens * self.model.itemsize
        message = self.line("cp").seconds("send", 2, times * block)
        return (n - 1) * max(0.0, message - square / n)

    def crossed(self, axis: str, ops: Mapping[str, float]) -> float:
        """Seconds of that many collectives of a micro-batch's activations over an axis."""
        n, line = getattr(self.layout, axis), self.line(axis)
        return sum(count * line.seconds(op, n, self.message) for op, count in ops.items() if count)

    def line(self, axis: str) -> AlphaBeta:
        """Seconds a round, and a byte, of messages over an axis, in all its groups at once."""
        return _line(self.machine, self.degrees, axis)

    def to_next(self, sender: int, receiver: int) -> float:
        """Seconds until a micro-batch's activations, or their gradients, are on another stage."""
        t = self.layout.tp
        line = _hop(self.machine, self.degrees, sender, receiver)
        gathers = 0 if self.layout.sequence else 1
        return line.seconds("send", 2, self.message / t) + self.crossed(
            "tp", {"all_gather": gathers}
        )

    def sums(self, stage: int) -> float:
        """Seconds of what that stage's ranks do with their gradients, at the end of a step."""
        layout, found = self.layout, 0.0
        copies = {"dp-cp": layout.dp * layout.cp, "expert-dp": layout.expert_dp}
        counts = parameters(self.model, layout, stage)
        for (axis, size), count in zip(copies.items(), counts, strict=True):
            if size == 1 or not count:
                continue
            ops = gradients(layout.zero, self.num_micro_batches, count)
            each = {op: self.state["weights"] for op in ops if op == "all_gather"}
            for op, numbers in ops.items():
                num_bytes = numbers * each.get(op, self.state["gradients"])
                found += self.line(axis).seconds(op, size, num_bytes)
        return found

    @property
    def tied(self) -> float:
        """Seconds of the all-reduce of a tied table's two gradients."""
        table = next((part for part in self.model.parts if part.tied), None)
        if table is None or self.layout.pp == 1:
            return 0.0
        num_bytes = self.state["gradients"] * (table.split / self.layout.tp + table.whole)
        return self.line("embedding").seconds("all_reduce", 2, num_bytes)

    @property
    def optimizer(self) -> float:
        """Seconds in which the fullest stage's state is read and written once."""
        layout = self.layout
        ranks = (layout.dp * layout.cp, layout.expert_dp) if layout.zero else (1, 1)
        num_bytes = 2 * sum(self.state.values())
        most = max(
            sum(n / r for n, r in zip(parameters(self.model, layout, s), ranks, strict=True))
            for s in range(layout.pp)
        )
        return most * num_bytes / self.machine.memory_rate

    @property
    def schedule(self) -> Actions:
        """1F1B; interleaved where a stage has several chunks."""
        p, v = self.layout.pp, self.layout.chunks
        if v > 1:
            return interleaved(p, self.num_micro_batches, v)
        return one_forward_one_backward(p, self.num_micro_batches)

    def simulated(self) -> tuple[float, float]:
        """Seconds of the pipeline, action by action, and of sums of gradients that outlast it."""
        forward, backward = ([sum(turn) for turn in way] for way in zip(*self.turns, strict=True))
        timeline = simulate(
            self.schedule,
            forward,
            backward,
            backward_weight=0.0,
            send=self.to_next,
            shared_links=True,
        )
        last = {span.stage: span for span in timeline.spans}  # in order of time on each stage
        ends = [max(span.end, span.start + self.sums(stage)) for stage, span in last.items()]
        return timeline.seconds, max(ends) - timeline.seconds

    def estimated(self) -> tuple[float, float]:
        """The same by a formula.

        The first micro-batch passes every stage, there and back. The others follow at the pace of
        the slowest stage, or of stages that wait: those from s on have p - s of them in flight.
        """
        p, v, pace, way = self.layout.pp, self.layout.chunks, 0.0, 0.0
        for stage in reversed(range(p)):
            here = sum(self.by_stage[stage])
            way += here / v
            pace = max(pace, here, v * way / (p - stage))
            way += 2 * self.to_next(stage - 1, stage) if stage else 0.0
        hidden = sum(self.turns[0][1])
        return way + (self.num_micro_batches - 1 / v) * pace, max(0.0, self.sums(0) - hidden)

    def parts(self, pipeline: float, exposed: float) -> dict[str, float]:
        """What the slowest stage does, and how long it idles; then what follows."""
        turns = max(self.by_stage, key=sum)._asdict()
        busy = {name: self.num_micro_batches * each for name, each in turns.items()}
        after = {"sums": exposed + self.tied, "optimizer": self.optimizer}
        return busy | {"idle": max(0.0, pipeline - sum(busy.values()))} | after


def seconds(
    model: Model, layout: Layout, machine: Machine, num_sequences: int, state: State = MIXED
) -> dict[str, float]:
    """Seconds of one step, by part: computing, tp, cp, ep, idle, sums, optimizer. They add up.

    The first four are the slowest stage's, all of them exposed.

    >>> model = gpt(12, 768, 12, num_tokens=50304, num_positions=1024)
    >>> machine = Machine(between=25e9, ranks_per_host=1, flops=400e12)
    >>> of = seconds(model, Layout(dp=8), machine, num_sequences=64)
    >>> {part: f"{value * 1e3:.0f} ms" for part, value in of.items() if value}
    {'computing': '18 ms', 'sums': '16 ms'}
    """
    step = Step(model, layout, machine, num_sequences, state)
    return step.parts(*step.simulated())


def estimate(
    model: Model, layout: Layout, machine: Machine, num_sequences: int, state: State = MIXED
) -> dict[str, float]:
    """The same by a formula, which does not run the schedule: for searches.

    >>> model = gpt(12, 768, 12, num_tokens=50304, num_positions=1024)
    >>> machine, layout = Machine(between=25e9, ranks_per_host=1, flops=400e12), Layout(dp=2, pp=4)
    >>> for count in (seconds, estimate):
    ...     print(f"{sum(count(model, layout, machine, 64).values()):.4f}")
    0.0410
    0.0410
    """
    step = Step(model, layout, machine, num_sequences, state)
    return step.parts(*step.estimated())


# Thousands of ranks are looked up often: remembered by degrees, for a grid would keep its ranks.


@lru_cache(1 << 14)
def _line(machine: Machine, degrees: Layout, axis: str) -> AlphaBeta:
    return machine.line(degrees.grid.groups(axis))


@lru_cache(1 << 14)
def _hop(machine: Machine, degrees: Layout, sender: int, receiver: int) -> AlphaBeta:
    return machine.line(degrees.grid.groups("pp")[:, [sender, receiver]])
