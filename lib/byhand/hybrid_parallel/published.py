"""Four published models, the machines they were measured on, and how long a step took. Pure.

1.3 B: 593 sequences a second, sharded as ZeRO does, not recomputed: mosaicml/llm-foundry,
scripts/train/benchmarking/README.md, A100 40GB. The others: Narayanan et al. 2021,
arXiv:2104.04473, table 1 and section 5.1: the FLOPs of a step over what each GPU reached. It does
not tell the layout of 175 B.
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


@dataclass(frozen=True)
class Cluster:
    """GPUs: what a product reaches on one, its memory in bytes, and how they are linked."""

    num_ranks: int
    flops: float = 187e12  # 60 % of an A100's 312e12
    memory: float = 80e9
    machine: Machine = DGX


@dataclass(frozen=True)
class Published:
    """A model on the machine that somebody measured: the layout there, and seconds of a step."""

    model: Model
    cluster: Cluster
    layout: Layout | None
    measured: float


PUBLISHED = {
    "1.3 B": Published(
        Model(50368, 2048, 2048, 16, 24, 640), Cluster(64, memory=40e9), Layout(64, 1, 1), 1.08
    ),
    "18 B": Published(Model(51200, 2048, 6144, 48, 40, 1024), Cluster(256), Layout(32, 8, 1), 9.40),
    "175 B": Published(Model(51200, 2048, 12288, 96, 96, 1536), Cluster(1024), None, 31.5),
    "1 T": Published(
        Model(51200, 2048, 25600, 160, 128, 3072), Cluster(3072), Layout(6, 8, 64), 102.6
    ),
}
