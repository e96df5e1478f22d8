"""Every way to lay out a world's ranks as dp x tp x pp, and what each is predicted to cost. Pure.

Pure: degrees and sizes in, bytes and seconds out, by byhand.hybrid_parallel.cost's formulas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from byhand.hybrid_parallel.cost import Prediction, Sizes, predict, sent_bytes
from byhand.hybrid_parallel.machine import Machine
from byhand.pipeline_schedules.actions import Schedule
from byhand.pipeline_schedules.orders import one_forward_one_backward
from byhand.rank_groups.grid import ORDER, rank_groups

ROWS = 2  # of a micro-batch
ONE_HOST = Machine()


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
    sizes: Sizes,
    layouts: Sequence[Layout],
    num_sequences: int,
    seconds: float,
    software: Mapping[Layout, float],
    machine: Machine = ONE_HOST,
) -> dict[Layout, Prediction]:
    """How long a step takes under each layout, on that machine: see `cost.predict`."""
    n = num_sequences
    return {
        at: predict(sizes, at.groups, machine, at.schedule(n), n, seconds, software[at])
        for at in layouts
    }
