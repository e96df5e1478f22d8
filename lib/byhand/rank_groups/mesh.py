"""Ranks as an array with named axes: every group of ranks is a slice of it. Pure.

A mesh of tp 2 × dp 2 × pp 4 holds the ranks 0 to 15. Its first axis is the fastest: ranks 0 and 1
differ in their tp coordinate alone. A group over some axes is what remains when the coordinates
along all the others are held fixed. Groups are numpy arrays, cut without a loop over ranks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


class Mesh:
    """The ranks 0 to N-1, with one coordinate along each axis; the first axis varies fastest."""

    def __init__(self, sizes: Mapping[str, int]):
        """sizes: how many ranks lie along each axis, the fastest axis first.

        `array` holds the ranks and has the axes in numpy's order, the fastest last.
        """
        self.sizes = dict(sizes)
        self.axes = tuple(self.sizes)
        shape = tuple(reversed(self.sizes.values()))
        self.array = np.arange(math.prod(shape)).reshape(shape)
        self.array.setflags(write=False)  # groups are views of it

    def __repr__(self) -> str:
        return "Mesh(" + " × ".join(f"{axis} {size}" for axis, size in self.sizes.items()) + ")"

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return self.array.size

    def coordinates(self, rank: int) -> dict[str, int]:
        """Where the rank stands along each axis."""
        if not 0 <= rank < self.world_size:
            raise ValueError(f"there is no rank {rank} among {self.world_size}, 0 to N-1")
        coordinates, rest = {}, int(rank)
        for axis, size in self.sizes.items():
            rest, coordinates[axis] = divmod(rest, size)
        return coordinates

    def rank(self, **coordinates: int) -> int:
        """The rank at these coordinates; an axis of one rank may be left out.

        Raises:
            ValueError: an axis is missing, unknown, or shorter than the coordinate needs.
        """
        missing = [a for a, size in self.sizes.items() if size > 1 and a not in coordinates]
        if missing:
            raise ValueError(f"which rank along {', '.join(missing)}? {self!r}")
        return int(self.ranks(**{**dict.fromkeys(self.axes, 0), **coordinates}))

    def ranks(self, **selection: int | slice) -> np.ndarray:
        """A view of the ranks with these coordinates; axes not named are kept whole.

        Each may be a number, which drops the axis, or a slice. The fastest axis comes last.
        """
        for axis, chosen in selection.items():
            if axis not in self.sizes:
                raise ValueError(f"there is no axis {axis!r} in {self!r}")
            if not isinstance(chosen, slice) and not 0 <= chosen < self.sizes[axis]:
                raise ValueError(f"{axis} {chosen} lies outside 0 to {self.sizes[axis] - 1}")
        return self.array[tuple(selection.get(axis, slice(None)) for axis in reversed(self.axes))]

    def groups(self, *axes: str) -> np.ndarray:
        """Every group over these axes, [number of groups, ranks in each].

        Within a group and from group to group, the ranks' order is the mesh's: fastest axis first.
        """
        inside = sorted({self.place(axis) for axis in axes})
        outside = [i for i in range(len(self.axes)) if i not in inside]
        size = math.prod(self.array.shape[i] for i in inside)
        return self.array.transpose(outside + inside).reshape(-1, size)

    def group(self, rank: int, *axes: str) -> np.ndarray:
        """The one group over these axes that `rank` is in."""
        selection: dict[str, Any] = {**self.coordinates(rank), **dict.fromkeys(axes, slice(None))}
        return self.ranks(**selection).reshape(-1)

    def place(self, axis: str) -> int:
        """Which axis of `array` that is: the fastest is the last."""
        if axis not in self.sizes:
            raise ValueError(f"there is no axis {axis!r} in {self!r}")
        return len(self.axes) - 1 - self.axes.index(axis)
