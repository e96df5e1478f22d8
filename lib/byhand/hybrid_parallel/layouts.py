"""Every way to lay out a world's ranks as dp x tp x pp, and what each is predicted to cost. Pure.

Pure: degrees and sizes in, bytes and seconds out, by byhand.hybrid_parallel.cost's formulas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from byhand.communication_cost.model import AlphaBeta
from byhand.hybrid_parallel.cost import Machine, Prediction, Sizes, predict, sent_bytes
from byhand.pipeline_schedules.actions import Schedule
from byhand.pipeline_schedules.orders import one_forward_one_backward
from byhand.rank_groups.grid import ORDER, rank_groups

ROWS = 2  # of a micro-batch
BILLION = Sizes(50304, 1024, 2048, 16, 24, itemsize=2)  # 1.3 billion parameters, in two bytes each
FLOPS, NVLINK = 200e12, AlphaBeta(1e-5, 1 / 300e9)  # what a device of 2023 reaches in practice


@dataclass(frozen=True)
class Layout:
    """How many ways each axis shares out the ranks, and in which order they are numbered."""

    dp: int
    tp: int
    pp: int
    order: str = ORDER

    def __str__(self) -> str:
        return f"dp {self.dp} · tp {self.tp} · pp {self.pp}"

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return self.dp * self.tp * self.pp

    @property
    def groups(self) -> Mapping[str, list[list[int]]]:
        """Lists of ranks by name."""
        return rank_groups(self.world_size, tp=self.tp, pp=self.pp, order=self.order)

    def schedule(self, num_sequences: int) -> Schedule:
        """1F1B, in micro-batches of ROWS sequences; one whole batch where there is one stage."""
        m = max(1, num_sequences // self.dp // ROWS) if self.pp > 1 else 1
        return one_forward_one_backward(self.pp, m)


def layouts(world_size: int, order: str = ORDER) -> list[Layout]:
    """Every way to write the number of ranks as dp × tp × pp."""
    divisors = [d for d in range(1, world_size + 1) if world_size % d == 0]
    pairs = [(tp, pp) for tp in divisors for pp in divisors if world_size % (tp * pp) == 0]
    return [Layout(world_size // tp // pp, tp, pp, order) for tp, pp in pairs]


def predict_bytes(
    sizes: Sizes, layouts: Sequence[Layout], num_sequences: int
) -> dict[Layout, dict[str, float]]:
    """What all ranks together send in a step under each layout, by group."""
    return {at: sent_bytes(sizes, at.dp, at.tp, at.pp, num_sequences) for at in layouts}


def predict_seconds(
    sizes: Sizes, layouts: Sequence[Layout], num_sequences: int, machine: Machine
) -> dict[Layout, Prediction]:
    """How long a step takes under each layout, on that machine."""
    n = num_sequences
    return {at: predict(sizes, at.groups, machine, at.schedule(n), n) for at in layouts}


def fastest_layouts(
    world_size: int, ranks_per_host: int, between: float, num_sequences: int, count: int = 10
) -> list[tuple[str, Prediction]]:
    """The layouts of a GPT of 1.3 billion parameters that are predicted to be fastest, by name.

    Its halves of blocks are shared equally by the stages; a host's ranks share one link.

    Raises:
        ValueError: no layout has a sequence for each replica.
    """
    d = BILLION.num_features
    forward = 12 * d * d * BILLION.num_positions / FLOPS  # 6 d² weights in half a block
    lines = dict.fromkeys((2**k for k in range(1, 20)), NVLINK)
    machine = Machine(forward, lines, between, ranks_per_host)
    found = []
    for layout in layouts(world_size):
        fits = 2 * BILLION.num_blocks % layout.pp == 0 and BILLION.num_heads % layout.tp == 0
        if fits and num_sequences >= layout.dp:
            schedule = layout.schedule(num_sequences)
            found.append(
                (str(layout), predict(BILLION, layout.groups, machine, schedule, num_sequences))
            )
    if not found:
        raise ValueError(f"{num_sequences} sequences are too few for {world_size} ranks")
    return sorted(found, key=lambda pair: pair[1].seconds)[:count]
