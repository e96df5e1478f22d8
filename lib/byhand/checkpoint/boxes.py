"""Boxes of a tensor: which of them cover it, who writes them, what one needs of another. Pure.

A shard is a box of its tensor: the index it begins at and its size, by dimension. However a model
is split (by rows, by columns, by flat shards of ZeRO), what a rank holds of a tensor is a box, and
what it needs of a saved one is the box that the two share:

    saved by 2 ranks        wanted by one of 3      overlaps
    [0:4, 0:6]              [2:6, 0:4]              [2:4, 0:4]
    [4:8, 0:6]                                      [4:6, 0:4]
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Box(NamedTuple):
    """Where a shard lies in its tensor: the first index and the size, by dimension.

    >>> box = Box(starts=(2, 0), sizes=(3, 4))
    >>> box.ends, box.num_elements
    ((5, 4), 12)
    """

    starts: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def ends(self) -> tuple[int, ...]:
        """Behind the last index, by dimension."""
        return tuple(map(operator.add, self.starts, self.sizes))

    @property
    def num_elements(self) -> int:
        """Numbers in it."""
        return math.prod(self.sizes)

    def __str__(self) -> str:
        edges = (f"{start}:{end}" for start, end in zip(self.starts, self.ends, strict=True))
        return f"[{', '.join(edges)}]"


def overlap(one: Box, other: Box) -> Box | None:
    """The box that both share; None where they share nothing."""
    starts = tuple(map(max, one.starts, other.starts))
    ends = tuple(map(min, one.ends, other.ends))
    sizes = tuple(end - start for start, end in zip(starts, ends, strict=True))
    return Box(starts, sizes) if all(size > 0 for size in sizes) else None


def place_in(inner: Box, outer: Box) -> tuple[slice, ...]:
    """Where a box lies in the tensor of a box around it."""
    starts = (a - b for a, b in zip(inner.starts, outer.starts, strict=True))
    return tuple(slice(s, s + size) for s, size in zip(starts, inner.sizes, strict=True))


def span(inner: Box, outer: Box) -> tuple[int, int]:
    """The first of outer's numbers, row by row, that is in inner, and the one after the last."""
    first = last = 0
    for place, size in zip(place_in(inner, outer), outer.sizes, strict=True):
        first, last = first * size + place.start, last * size + place.stop - 1
    return first, last + 1


def check_cover(name: str, shape: Sequence[int], boxes: Iterable[Box]) -> None:
    """Whether different boxes hold each number of a tensor once.

    Raises:
        ValueError: one lies outside, two overlap, or some numbers are in none.
    """
    filled = [box for box in dict.fromkeys(boxes) if box.num_elements]
    whole = Box((0,) * len(shape), tuple(shape))
    for box in filled:
        if len(box.starts) != len(shape) or overlap(box, whole) != box:
            raise ValueError(f"{name}: the box {box} lies outside the shape {list(shape)}")
    for one, other in itertools.combinations(filled, 2):
        if overlap(one, other):
            raise ValueError(
                f"{name}: the boxes {one} and {other} overlap: ranks hold the same box or share "
                "no number"
            )
    held = sum(box.num_elements for box in filled)
    if held != whole.num_elements:
        raise ValueError(
            f"{name}: ranks hold {held} of the {whole.num_elements} numbers of {list(shape)}"
        )


def writers(held: Sequence[Mapping[tuple[str, Box], int]]) -> list[list[tuple[str, Box]]]:
    """What each rank writes: every (name, box) once, by whichever holder has least to write.

    held: by rank, the bytes of each (name, box) that it holds; replicas hold the same.
    """
    holders: dict[tuple[str, Box], list[int]] = {}
    num_bytes: dict[tuple[str, Box], int] = {}
    for rank, boxes in enumerate(held):
        for key, size in boxes.items():
            holders.setdefault(key, []).append(rank)
            num_bytes[key] = size
    load = [0] * len(held)
    chosen: list[list[tuple[str, Box]]] = [[] for _ in held]
    for key in sorted(holders, key=lambda key: (-num_bytes[key], key)):  # the largest first
        rank = min(holders[key], key=lambda rank: (load[rank], rank))
        load[rank] += num_bytes[key]
        chosen[rank].append(key)
    return chosen
