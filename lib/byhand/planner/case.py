"""What is asked: a model, many layouts, a machine, software; and what everything else needs. Pure.

Letters: T tokens of a micro-batch on one rank; t, p, m, v as in all lectures, and columns here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from byhand.costs.model import Model, Part
from byhand.planner.machines import Machine
from byhand.planner.sizes import Sizes, sizes
from byhand.planner.software import Software
from byhand.planner.table import Column, Table

NONE, SELECTIVE, FULL = range(3)  # byhand.costs.layout.RECOMPUTE


@dataclass(frozen=True)
class Case:
    """A step of `model` on `num_sequences` under each of the layouts in `at`.

    reduce_bytes: of a gradient as it is summed.
    """

    model: Model
    at: Table
    machine: Machine
    software: Software
    num_sequences: int
    precision: str = "bf16"
    compiled: bool = True
    reduce_bytes: int = 4

    @cached_property
    def sizes(self) -> Sizes:
        """The model's."""
        return sizes(self.model)

    @cached_property
    def part(self) -> dict[str, Part]:
        """One of each kind; an MLP's is "mlp", with experts or without."""
        return {"mlp" if p.name == "experts" else p.name: p for p in self.model.parts}

    @cached_property
    def micro_batches(self) -> Column:
        """Of one replica."""
        return self.num_sequences // (self.at.dp * self.at.rows)

    @cached_property
    def tokens(self) -> Column:
        """T: of a micro-batch, on one rank."""
        return self.at.rows * self.sizes.positions / self.at.cp

    @cached_property
    def shared(self) -> Column:
        """Ranks that share the tokens between what tp splits."""
        return np.where(self.at.sequence, self.at.tp, 1)

    @cached_property
    def blocks(self) -> tuple[Column, Column]:
        """On the first stage and on the last: whole blocks a chunk, the first have one more."""
        p, v = self.at.pp, self.at.chunks
        each, more = divmod(self.sizes.blocks, p * v)
        return each * v + -(-more // p), each * v + more // p
