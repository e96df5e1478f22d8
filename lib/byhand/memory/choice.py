"""Which layers of a chain to recompute, so that what is saved fits under a cap. Pure.

    cheapest(layers, num_bytes)   the least work that fits: exact
    greedy(layers, num_bytes)     first whatever frees most bytes for its work: near, and quick

Each layer is recomputed or not, by itself: a knapsack. `cheapest` is a dynamic programme over the
layers. Of all choices among the first i it keeps those that no other beats in both bytes and work,
F of them; each layer at most doubles these, and many fall out. F is at most 2^i, and at most one
more than the bytes to be freed; L layers of k kinds leave no more than (L/k + 1)^k. Its cost is
O(L F log F) comparisons, so it is quick where layers are alike, as in a transformer. `greedy` costs
O(L log L), and can be any factor worse: the last layer it takes may do far more than is missing.

Saved is counted as it is between forward and backward. While backward is at a recomputed layer,
what that one saves is whole beside it, and what later layers saved is gone.
Source: Nemhauser and Ullmann 1969 (the choices that no other beats).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from byhand.words import counted


class LayerCost(NamedTuple):
    """Bytes that a layer saves, whole or recomputed, and the work of its forward, in any unit.

    >>> LayerCost(whole_bytes=34, recomputed_bytes=2, work=24.0).freed_bytes
    32
    """

    whole_bytes: int
    recomputed_bytes: int
    work: float

    @property
    def freed_bytes(self) -> int:
        """By recomputing it."""
        return self.whole_bytes - self.recomputed_bytes


class Choice(NamedTuple):
    """Layers to recompute, by number, and what comes of it."""

    freed_bytes: int = 0
    work: float = 0
    numbers: tuple[int, ...] = ()

    def plus(self, number: int, layer: LayerCost) -> Choice:
        """This layer is recomputed too."""
        freed_bytes = self.freed_bytes + layer.freed_bytes
        return Choice(freed_bytes, self.work + layer.work, (*self.numbers, number))


def cheapest(layers: Sequence[LayerCost], num_bytes: int) -> list[int]:
    """The numbers of the layers to recompute, ascending: of those that fit, the least work.

    num_bytes: what all layers together may save. Where all fits, none is recomputed.

    Raises:
        ValueError: it is too little, whatever is recomputed.

    >>> layers = [LayerCost(4, 0, 1), LayerCost(100, 0, 40), LayerCost(12, 0, 6)]
    >>> cheapest(layers, 104), greedy(layers, 104)
    ([2], [0, 1])
    """
    missing = missing_bytes(layers, num_bytes)
    choices = [Choice()]
    for number, layer in enumerate(layers):
        more = [choice.plus(number, layer) for choice in choices]
        choices = unbeaten([*choices, *more], missing)
    return list(choices[-1].numbers)


def unbeaten(choices: Iterable[Choice], missing: int) -> list[Choice]:
    """Those that no other beats: by work ascending, each frees more than the one before it.

    Bytes beyond what is missing count for nothing, so the last alone may free all of it.
    """

    def useful(choice: Choice) -> int:
        return min(choice.freed_bytes, missing)

    found: list[Choice] = []
    for choice in sorted(choices, key=lambda each: (each.work, -useful(each))):
        if not found or useful(choice) > useful(found[-1]):
            found.append(choice)
    return found


def greedy(layers: Sequence[LayerCost], num_bytes: int) -> list[int]:
    """Layers to recompute, ascending: taken by bytes freed for their work, until all fits.

    Raises:
        ValueError: num_bytes is too little, whatever is recomputed.

    >>> layers = [LayerCost(4, 0, 1), LayerCost(100, 0, 40), LayerCost(12, 0, 6)]
    >>> [work(layers, choose(layers, 104)) for choose in (greedy, cheapest)]
    [41, 6]
    """
    missing, taken = missing_bytes(layers, num_bytes), list[int]()
    useful = [number for number, layer in enumerate(layers) if layer.freed_bytes > 0]
    for number in sorted(useful, key=lambda n: layers[n].work / layers[n].freed_bytes):
        if missing <= 0:
            break
        missing -= layers[number].freed_bytes
        taken.append(number)
    return sorted(taken)


def missing_bytes(layers: Sequence[LayerCost], num_bytes: int) -> int:
    """How many bytes must be freed; 0 or less where all fits.

    Raises:
        ValueError: so many cannot be.
    """
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(
            f"{counted(len(layers), 'layer')} cannot save less than {least:,} bytes, however many "
            f"are recomputed, and {num_bytes:,} are allowed: allow more, or split the layers"
        )
    return held_bytes(layers) - num_bytes


def held_bytes(layers: Sequence[LayerCost], numbers: Iterable[int] = ()) -> int:
    """What all layers save, when those with these numbers are recomputed.

    >>> layers = [LayerCost(34, 2, 24.0)] * 4
    >>> held_bytes(layers), held_bytes(layers, [0, 1])
    (136, 72)
    """
    return sum(each.whole_bytes for each in layers) - sum(layers[n].freed_bytes for n in numbers)


def work(layers: Sequence[LayerCost], numbers: Iterable[int]) -> float:
    """What it takes to recompute those with these numbers once.

    >>> work([LayerCost(34, 2, 24.0)] * 4, [0, 1])
    48.0
    """
    return sum(layers[number].work for number in numbers)
