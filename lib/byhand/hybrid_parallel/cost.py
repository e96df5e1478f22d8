"""What a hybrid step sends and how long it takes. Pure.

All ranks together send, in one step on B sequences (d = dp, t = tp, p = pp, n ranks in all):

    tp         2(t-1) · (4 L · activations + d · L · gain + tokens)
    pp         2(p-1) · t · activations
    dp         2(d-1) · (sharded + t · replicated)
    embedding  2 · t · d · table                                              where p > 1
    scalars    (2(t·p-1) · d + 2(n-1)) · 8                                    norm, and loss

in bytes. `activations`: those of the batch at one boundary, B·S·D numbers; `tokens`: those of x,
B·S of 8 bytes, broadcast as the targets are; `gain`: the partial gradients of one block;
`sharded` and `replicated`: the parameters of one replica, by placement, the table counted on both
ends of a pipeline. L blocks, each with two all-reduces forward and two backward.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from byhand.hybrid_parallel.machine import Lists, Machine
from byhand.pipeline_schedules.actions import Schedule
from byhand.pipeline_schedules.simulation import Timeline, simulate

SCALARS = "norm and loss"


@dataclass(frozen=True)
class Sizes:
    """Of a model of byhand.gpt: V tokens, S positions, D features, H heads, L blocks."""

    num_tokens: int
    num_positions: int
    num_features: int
    num_heads: int
    num_blocks: int
    itemsize: int = 4

    @property
    def table_bytes(self) -> int:
        """The tied table of tokens."""
        return self.num_tokens * self.num_features * self.itemsize

    @property
    def sharded_bytes(self) -> int:
        """What tensor-parallel ranks share out: per block 12 D² of weights and 7 D of biases."""
        d = self.num_features
        return self.num_blocks * (12 * d * d + 7 * d) * self.itemsize

    @property
    def gain_bytes(self) -> int:
        """The gains of one block's QKNorm, whose gradients are partial."""
        return 2 * self.num_features // self.num_heads * self.itemsize

    @property
    def replicated_bytes(self) -> int:
        """What every tensor-parallel rank holds whole, the table aside."""
        d = self.num_features
        norms_and_biases = 6 * d * self.num_blocks + 2 * d + self.num_positions * d
        return norms_and_biases * self.itemsize + self.num_blocks * self.gain_bytes

    def activation_bytes(self, num_sequences: float) -> float:
        """What crosses from layer to layer."""
        return num_sequences * self.num_positions * self.num_features * self.itemsize


def sent_bytes(sizes: Sizes, dp: int, tp: int, pp: int, num_sequences: int) -> dict[str, float]:
    """What all ranks together send in one step on a global batch, by group: the table above.

    Of the first step not counted: 16 · (7 + micro-batches) bytes over each boundary between two
    ranks, which tell a pipeline its shapes.
    """
    activations = sizes.activation_bytes(num_sequences)
    in_blocks = sizes.num_blocks * (4 * activations + dp * sizes.gain_bytes)
    tokens = num_sequences * sizes.num_positions * 8
    return {
        "tp": 2 * (tp - 1) * (in_blocks + tokens),
        "pp": 2 * (pp - 1) * tp * activations,
        "dp": 2 * (dp - 1) * held_bytes(sizes, tp, pp),
        "embedding": 2 * tp * dp * sizes.table_bytes if pp > 1 else 0,
        SCALARS: 8 * (2 * (tp * pp - 1) * dp + 2 * (dp * tp * pp - 1)),
    }


def held_bytes(sizes: Sizes, tp: int, pp: int) -> int:
    """The parameters that the tp · pp ranks of one replica hold together."""
    tables = sizes.table_bytes * (2 if pp > 1 else 1)
    return sizes.sharded_bytes + tp * (sizes.replicated_bytes + tables)


@dataclass(frozen=True)
class Prediction:
    """The seconds of one step and its parts: pipeline (all-reduces over tp in it), sums, software.

    `computing`: the seconds in which a rank computes, of one step.
    """

    pipeline: Timeline
    all_reduces: float  # over tp, of one rank and step: within the pipeline's time
    sums: float  # of gradients, over dp and embedding
    computing: float
    software: float = 0.0

    @property
    def seconds(self) -> float:
        """Of the whole step."""
        return self.pipeline.seconds + self.sums + self.software

    @property
    def parts(self) -> tuple[float, float, float, float, float]:
        """Seconds: a rank computes, all-reduces over tp, idles, sums gradients; software."""
        idle = self.pipeline.seconds - self.computing - self.all_reduces
        return self.computing, self.all_reduces, max(0.0, idle), self.sums, self.software

    @property
    def idle_fraction(self) -> float:
        """The share of the step in which a rank idles in the pipeline, as `parts` has it."""
        return self.parts[2] / self.seconds


def predict(
    sizes: Sizes,
    groups: Mapping[str, Lists],
    machine: Machine,
    schedule: Schedule,
    num_sequences: int,
    seconds: float,
    software: float = 0.0,
) -> Prediction:
    """One step whose stages have equal shares of the blocks; groups: of byhand.rank_groups.

    seconds: of half a block (an attention, or an MLP) for one sequence on one rank; its backward
    takes twice as long. software: of a whole step whose blocks take no time, measured. It is added
    at the end, as if nothing of it went on while other ranks compute.
    """
    dp, tp, pp = (len(groups[axis][0]) for axis in ("dp", "tp", "pp"))
    m = 1 + max(action.micro_batch for action in schedule[0])
    halves = 2 * sizes.num_blocks / pp  # of blocks, on one stage
    rows = num_sequences / dp / m
    message = sizes.activation_bytes(rows)
    compute = halves * seconds * rows / tp
    reduce = halves * machine.all_reduce(groups["tp"], message)

    @functools.cache
    def send(sender: int, receiver: int) -> float:
        return machine.send(groups["pp"], message, sender, receiver)

    costs = {"forward": compute + reduce, "backward_input": 2 * compute + reduce}
    timeline = simulate(schedule, **costs, backward_weight=0, send=send)
    sums = machine.all_reduce(groups["dp"], held_bytes(sizes, tp, pp) / (tp * pp))
    if pp > 1:
        sums += machine.all_reduce(groups["embedding"], sizes.table_bytes)
    return Prediction(timeline, 2 * m * reduce, sums, 3 * m * compute, software)
