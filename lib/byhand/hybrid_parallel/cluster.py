"""Which layout of a cluster trains a published GPT fastest: an estimate, and a simulation. Pure.

`estimate` is a formula, quick enough to try every layout; `simulated` runs the schedule's actions
one by one, and is what the estimate is held against. Both count the head, which the last stage has
beside fewer blocks; what the device's memory holds; the links of each host; and sums of gradients
that hide behind the last micro-batch's backward.

Blocks are recomputed in backward, as in Narayanan et al. 2021 (arXiv:2104.04473): a backward takes
three times its forward, and memory holds each block's input and one block at work. The state is 18
bytes a parameter (two of weights, four each of gradients, weights and Adam's two averages).
Left out: ZeRO, interleaving, sequence parallelism, and how a product's size changes its rate.

Shapes: b sequences a micro-batch, S positions, D features, H heads, V tokens, L blocks; t = tp,
p = stages, m micro-batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from byhand.communication_cost.model import AlphaBeta
from byhand.hybrid_parallel.layouts import Layout, layouts
from byhand.hybrid_parallel.machine import Machine
from byhand.hybrid_parallel.published import Cluster, Model
from byhand.pipeline_schedules.orders import one_forward_one_backward
from byhand.pipeline_schedules.simulation import simulate
from byhand.rank_groups.grid import RankGrid

STATE = 18  # bytes a parameter
ROWS = 1, 2, 4, 8, 16  # of a micro-batch, to choose from


@dataclass(frozen=True)
class Plan:
    """A layout and the sequences of a micro-batch, for a model on a cluster."""

    model: Model
    cluster: Cluster
    layout: Layout
    rows: int

    def __str__(self) -> str:
        return f"{self.layout} · b {self.rows}"

    @property
    def num_micro_batches(self) -> int:
        """m, of one replica and step."""
        return self.model.num_sequences // self.layout.dp // self.rows

    @cached_property
    def halves(self) -> list[int]:
        """Halves of blocks on each stage, the last one's fewer by what the head takes."""
        total, others = 2 * self.model.num_blocks, self.layout.pp - 1
        if not others:
            return [total]
        head = 3 / 4 * self.model.head_flops / self.model.half_flops  # is not recomputed

        def slowest(last: int) -> float:
            return max(-(-(total - last) // others), last + head)

        last = min(range(total - others + 1), key=slowest)
        share, more = divmod(total - last, others)
        return [share + (stage < more) for stage in range(others)] + [last]

    @property
    def activation_bytes(self) -> float:
        """Of a micro-batch, where a block ends: 2 b S D."""
        return 2 * self.rows * self.model.num_positions * self.model.num_features

    def parameters(self, stage: int) -> float:
        """Of one rank of that stage: 6 D² a half block, and the table at both ends."""
        ends = (stage == 0) or (stage == self.layout.pp - 1)
        d = self.model.num_features
        return (6 * d * d * self.halves[stage] + ends * d * self.model.num_tokens) / self.layout.tp

    def memory(self, stage: int) -> float:
        """Bytes: state, inputs of blocks in flight, one block at work, the head's scores."""
        model, t, last = self.model, self.layout.tp, self.layout.pp - 1
        in_flight = min(self.layout.pp - stage, self.num_micro_batches)
        kept = in_flight * self.halves[stage] / 2 * self.activation_bytes
        heads = 5 * model.num_heads * model.num_positions / model.num_features
        at_work = self.activation_bytes / 2 * (10 + (24 + heads) / t)
        scores = 6 * self.rows * model.num_positions * model.num_tokens / t * (stage == last)
        return STATE * self.parameters(stage) + kept + at_work + scores

    @property
    def fits(self) -> bool:
        """Whether every stage fits into memory, and everything divides."""
        dp, tp, pp = self.layout.dp, self.layout.tp, self.layout.pp
        whole = self.model.num_sequences % (dp * self.rows) == 0 and self.model.num_heads % tp == 0
        enough = whole and pp <= 2 * self.model.num_blocks
        return enough and max(map(self.memory, range(pp))) <= self.cluster.memory

    @cached_property
    def reduce(self) -> float:
        """Seconds of one all-reduce over tp: half a block has one forward and two backward."""
        return self.reduced("tp", self.activation_bytes)

    @cached_property
    def seconds(self) -> tuple[list[float], list[float]]:
        """Of one micro-batch's forward and backward, for each stage."""
        rate = self.cluster.flops * self.layout.tp / self.rows
        half, head = self.model.half_flops / rate, self.model.head_flops / rate
        heads = [0.0] * (self.layout.pp - 1) + [head]
        pairs = list(zip(self.halves, heads, strict=True))
        forward = [n * (half + self.reduce) + head for n, head in pairs]
        return forward, [n * (3 * half + 2 * self.reduce) + 2 * head for n, head in pairs]

    def sums(self, stage: int) -> float:
        """Seconds of that stage's gradients' all-reduce over dp, in four bytes each."""
        return self.reduced("dp", 4 * self.parameters(stage))

    @property
    def tied(self) -> float:
        """Seconds of the all-reduce of the table's two gradients."""
        table = 4 * self.model.num_features * self.model.num_tokens / self.layout.tp
        return self.reduced("embedding", table) if self.layout.pp > 1 else 0.0

    def send(self, sender: int, receiver: int) -> float:
        """Seconds of a micro-batch's activations to the next stage, or their gradients back."""
        line = _hop(self.cluster.machine, self.layout, sender, receiver)
        return line.seconds("send", 2, self.activation_bytes)

    def reduced(self, axis: str, num_bytes: float) -> float:
        """Seconds of an all-reduce over each group of that axis, all at once."""
        num_ranks = {"tp": self.layout.tp, "dp": self.layout.dp, "embedding": 2}[axis]
        line = _line(self.cluster.machine, self.layout, axis)
        return line.seconds("all_reduce", num_ranks, num_bytes)


def estimate(plan: Plan) -> float:
    """Seconds of a step under 1F1B, by a formula.

    The first micro-batch passes every stage, there and back. The others follow at the pace of the
    slowest stage, or of stages that wait: those from s on have p - s micro-batches in flight.
    """
    forward, backward = plan.seconds
    p, pace, way = plan.layout.pp, 0.0, 0.0
    for stage in reversed(range(p)):
        here = forward[stage] + backward[stage]
        way += here
        pace = max(pace, here, way / (p - stage))
        way += 2 * plan.send(stage - 1, stage) if stage else 0.0
    return way + (plan.num_micro_batches - 1) * pace + exposed(plan)


def exposed(plan: Plan) -> float:
    """Seconds of sums of gradients that the first stage's last backward does not hide."""
    return max(0.0, plan.sums(0) - plan.seconds[1][0]) + plan.tied


def parts(plan: Plan) -> tuple[float, float, float, float, float]:
    """Of the slowest stage: seconds computing, in all-reduces over tp, idle, in sums; no software.

    Together they are the estimate.
    """
    forward, backward = plan.seconds
    stage = max(range(plan.layout.pp), key=lambda s: forward[s] + backward[s])
    reduces = plan.num_micro_batches * 3 * plan.halves[stage] * plan.reduce
    busy = plan.num_micro_batches * (forward[stage] + backward[stage])
    idle = estimate(plan) - exposed(plan) - busy
    return busy - reduces, reduces, idle, exposed(plan), 0.0


def simulated(plan: Plan) -> float:
    """Seconds of the same step, action by action; a message waits for those before it.

    A stage's gradients are summed while its last backward makes them, or as long after as needed.
    """
    schedule = one_forward_one_backward(plan.layout.pp, plan.num_micro_batches)
    timeline = simulate(schedule, *plan.seconds, 0.0, plan.send, shared_links=True)
    last = {span.stage: span for span in timeline.spans}  # in order of time on each stage
    ends = [max(span.end, span.start + plan.sums(stage)) for stage, span in last.items()]
    return max(ends) + plan.tied


def plans(model: Model, cluster: Cluster) -> list[Plan]:
    """Everything that fits into memory: layouts, by sequences of a micro-batch."""
    found = (
        Plan(model, cluster, layout, rows) for layout in layouts(cluster.num_ranks) for rows in ROWS
    )
    return [plan for plan in found if plan.fits]


def fastest(model: Model, cluster: Cluster) -> list[Plan]:
    """The plans that fit, by their estimate.

    Raises:
        ValueError: none fits.
    """
    found = sorted(plans(model, cluster), key=estimate)
    if not found:
        raise ValueError(
            f"{cluster.num_ranks} ranks of {cluster.memory / 1e9:.0f} GB cannot hold this model "
            f"and train it on {model.num_sequences} sequences a step"
        )
    return found


def by_layout(model: Model, cluster: Cluster) -> dict[Layout, Plan]:
    """For each layout that fits its fastest plan; the fastest layout first."""
    best: dict[Layout, Plan] = {}
    for plan in fastest(model, cluster):
        best.setdefault(plan.layout, plan)
    return best


# Thousands of ranks are looked up often: remembered by layout.


@lru_cache(1 << 10)
def _grid(layout: Layout) -> RankGrid:
    return RankGrid(layout.world_size, tp=layout.tp, pp=layout.pp, order=layout.order)


@lru_cache(1 << 14)
def _line(machine: Machine, layout: Layout, axis: str) -> AlphaBeta:
    return machine.line(_grid(layout).groups(axis))


@lru_cache(1 << 14)
def _hop(machine: Machine, layout: Layout, sender: int, receiver: int) -> AlphaBeta:
    return machine.line(_grid(layout).groups("pp")[:, [sender, receiver]])
