"""Ten published GPTs, the layout that each ran in, and how long a step took. Pure.

Narayanan et al. 2021, arXiv:2104.04473, table 1: GPUs are A100 of 80 GB, eight a host, each with a
link of 200 Gb/s (section 5). The paper tells what each GPU reached; the seconds of a step follow
from its formula (3). These runs interleaved their pipelines and shared out what stages send
(section 5.1).
"""

from dataclasses import dataclass

from byhand.communication_cost.model import AlphaBeta
from byhand.costs.layout import Layout
from byhand.costs.machine import Machine
from byhand.costs.model import Model, gpt

# Eight A100 on NVLink, a card of 200 Gb/s each. 60 % of an A100's 312e12 operations a second is
# chosen to suit such runs; links reach 86 % and 79 % of what is written on them.
DGX = Machine(AlphaBeta(2e-6, 1 / 258e9), 19.75e9, 8, 8, flops=187e12, memory=80e9)


def published_gpt(num_features: int, num_heads: int, num_layers: int) -> Model:
    """The paper's GPTs: 51 200 tokens, 2048 positions, attention without a fused kernel."""
    return gpt(num_layers, num_features, num_heads, 51200, 2048, scores=5)


def step_flops(model: Model, num_sequences: int) -> float:
    """Of one step with blocks recomputed in backward: formula (3) of the paper.

    A block's products run forward twice, and backward takes two; the head's are not run again.
    """
    each = sum(part.flops * (4 if part.half else 3) for part in model.parts)
    return num_sequences * model.num_positions * each


@dataclass(frozen=True)
class Published:
    """A model, the sequences of a step, the GPUs and layout it ran in, and each GPU's FLOP/s."""

    model: Model
    num_sequences: int
    layout: Layout
    reached: float
    machine: Machine = DGX

    @property
    def seconds(self) -> float:
        """Of a step: derived from what was reached."""
        return step_flops(self.model, self.num_sequences) / self.layout.num_ranks / self.reached


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
        published_gpt(features, heads, blocks),
        sequences,
        Layout(gpus // tp // pp, tp, pp),
        1e12 * reached,
    )
    for billions, (features, heads, blocks, tp, pp, gpus, sequences, reached) in TABLE.items()
}
