"""Ten published GPTs, the layout that each ran in, and how long a step took. Pure.

Narayanan et al. 2021, arXiv:2104.04473, table 1: GPUs are A100 of 80 GB, eight a host, each with a
link of 200 Gb/s (section 5). The paper tells what each GPU reached; the seconds of a step follow
from its formula (3). These runs interleaved their pipelines and shared out what stages send
(section 5.1).
"""

from dataclasses import dataclass

from byhand.communication_cost.model import AlphaBeta
from byhand.hybrid_parallel.layouts import Layout
from byhand.hybrid_parallel.machine import Machine

DGX = Machine(AlphaBeta(2e-6, 1 / 300e9), 25e9, 8, 8)  # 8 A100 on NVLink, 200 Gb/s each


@dataclass(frozen=True)
class Model:
    """A GPT, and the batch of sequences that one step trains it on."""

    num_tokens: int
    num_positions: int
    num_features: int
    num_heads: int
    num_blocks: int
    num_sequences: int

    @property
    def half_flops(self) -> float:
        """Forward through half a block, on average, for one sequence: 12 S D² + 2 S² D."""
        s, d = self.num_positions, self.num_features
        return 12 * s * d * d + 2 * s * s * d

    @property
    def head_flops(self) -> float:
        """Forward through the head for one sequence: 2 S D V."""
        return 2 * self.num_positions * self.num_features * self.num_tokens

    @property
    def step_flops(self) -> float:
        """Of one step with blocks recomputed in backward: formula (3) of the paper."""
        blocks = 8 * self.num_blocks * self.half_flops  # two halves, forward twice and backward
        return self.num_sequences * (blocks + 3 * self.head_flops)


@dataclass(frozen=True)
class Cluster:
    """GPUs: what a product reaches on one, its memory in bytes, and how they are linked."""

    num_ranks: int
    flops: float = 187e12  # 60 % of an A100's 312e12
    memory: float = 80e9
    machine: Machine = DGX


@dataclass(frozen=True)
class Published:
    """A model, the GPUs and the layout it ran in, and the FLOP/s that each GPU reached."""

    model: Model
    cluster: Cluster
    layout: Layout
    reached: float

    @property
    def seconds(self) -> float:
        """Of a step: derived from what was reached."""
        return self.model.step_flops / self.cluster.num_ranks / self.reached


# Billions of parameters: D, H, L, t, p, GPUs, sequences, and TFLOP/s of each GPU.
TABLE = {
    "1.7": (2304, 24, 24, 1, 1, 32, 512, 137),
    "3.6": (3072, 32, 30, 2, 1, 64, 512, 138),
    "7.5": (4096, 32, 36, 4, 1, 128, 512, 142),
    "18": (6144, 48, 40, 8, 1, 256, 1024, 135),
    "39": (8192, 64, 48, 8, 2, 512, 1536, 138),
    "76": (10240, 80, 60, 8, 4, 1024, 1792, 140),
    "146": (12288, 96, 80, 8, 8, 1536, 2304, 148),
    "310": (16384, 128, 96, 8, 16, 1920, 2160, 155),
    "530": (20480, 128, 105, 8, 35, 2520, 2520, 163),
    "1008": (25600, 160, 128, 8, 64, 3072, 3072, 163),
}
PUBLISHED = {
    f"{billions} B": Published(
        Model(51200, 2048, features, heads, blocks, sequences),
        Cluster(gpus),
        Layout(gpus // tp // pp, tp, pp),
        1e12 * reached,
    )
    for billions, (features, heads, blocks, tp, pp, gpus, sequences, reached) in TABLE.items()
}
