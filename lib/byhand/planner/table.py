"""Layouts as columns of numbers, so that a formula written once is that of all of them. Pure.

A column is a numpy array with one entry for each layout. A rank's place follows from the order of
the axes: the leftmost has stride 1 (byhand.rank_groups), and a host holds the next so many ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.costs.layout import RECOMPUTE, Layout

Column = np.ndarray
Parts = Mapping[str, Column]
DEGREES = "dp", "tp", "pp", "cp", "ep", "rows", "chunks", "zero"


@dataclass(frozen=True)
class Table:
    """One entry a layout in each column. recompute: its place in byhand.costs.layout.RECOMPUTE."""

    dp: Column
    tp: Column
    pp: Column
    cp: Column
    ep: Column
    rows: Column
    chunks: Column
    zero: Column
    sequence: Column
    recompute: Column
    order: str

    def __len__(self) -> int:
        """How many layouts."""
        return len(self.dp)

    def take(self, chosen: Column | slice) -> Table:
        """Those rows alone: a stretch of them, or one truth a row."""
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Table(**columns, order=self.order)

    @property
    def columns(self) -> dict[str, Column]:
        """By name."""
        return {name: value for name, value in vars(self).items() if name != "order"}

    def layout(self, number: int) -> Layout:
        """One row, as byhand.costs has it."""
        degrees: dict[str, Any] = {name: int(getattr(self, name)[number]) for name in DEGREES}
        again = RECOMPUTE[int(self.recompute[number])]
        shared = bool(self.sequence[number])
        return Layout(**degrees, order=self.order, sequence=shared, recompute=again)

    def size(self, axis: str) -> Column:
        """Ranks of a group: of an axis, or of "dp-cp" and "expert-dp"."""
        if axis == "dp-cp":
            return self.dp * self.cp
        if axis == "expert-dp":
            return self.dp * self.cp // self.ep
        return getattr(self, axis)

    def stride(self, axis: str) -> Column:
        """Ranks between neighbours of a group; of "dp-cp", the farther where stages lie between."""
        axes = self.order.split("-")
        if axis == "dp-cp":
            near, far = sorted(("dp", "cp"), key=axes.index)
            next_to = self.stride(near) * self.size(near)
            apart = (self.size(far) > 1) & (self.stride(far) > next_to)
            return np.where(apart, self.stride(far), self.stride(near))
        sizes = {"tp": self.tp, "cp": self.cp, "dp": self.dp, "pp": self.pp}
        if axis in ("ep", "expert-dp"):  # the experts' mesh: byhand.rank_groups
            sizes = {"tp": self.tp, "ep": self.ep, "dp": self.size("expert-dp"), "pp": self.pp}
        found = np.ones_like(self.dp)
        for earlier in axes[: axes.index(axis.removeprefix("expert-"))]:
            found = found * sizes.get(earlier, 1)
        return found

    def cards(self, axis: str, ranks_per_host: int) -> Column:
        """Network cards that a ring of such a group has on each host; infinite if it stays on one.

        As many as the fewest of its ranks on one host, which byhand.costs.Machine.load counts; one
        where strides do not divide a host, which may be too few.
        """
        n, stride = self.size(axis), self.stride(axis)
        even = ranks_per_host % stride == 0
        fewest = np.where(even, np.gcd(n * stride, ranks_per_host) // stride, 1)
        stays = (n == 1) | (ranks_per_host % (n * stride) == 0)
        stays |= self.dp * self.tp * self.pp * self.cp <= ranks_per_host  # all ranks share one host
        return np.where(stays, np.inf, fewest)


def total(parts: Parts) -> Column:
    """Of all parts, for each layout."""
    return np.add.reduce([*np.broadcast_arrays(*parts.values())])


def table(layouts: Sequence[Layout]) -> Table:
    """The columns of these layouts, which are of one order."""
    columns = {name: np.array([getattr(at, name) for at in layouts]) for name in DEGREES}
    shared = np.array([at.sequence for at in layouts])
    again = np.array([RECOMPUTE.index(at.recompute) for at in layouts])
    return Table(**columns, sequence=shared, recompute=again, order=layouts[0].order)
