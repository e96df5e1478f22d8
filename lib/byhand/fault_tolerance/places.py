"""Which box of which weight does a tensor of a split model hold? Ask the split itself.

However a model is cut, something cuts it. So number all numbers of the model, 0, 1, 2, ..., and let
the same code cut the numbers: what a rank is left with says where its weights lie.

    numbered(weights)                   the same model, whose weights are their own numbers
    shards(tensors, numbers, weights)   each tensor as a named box, for byhand.checkpoint
    flat_shards(tensors, flats)         the same of ZeRO's flat shards, without their padding

A box is known by its first and its last number: all others lie between the two. Fused queries, keys
and values are named as three matrices [3, D, D], of each of which a rank has some rows: as one
matrix [3D, D] a rank's rows would be three stretches, and no box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from byhand.checkpoint import Box, Shard
from byhand.model.gpt import GPT, Block, Pair
from byhand.zero import Flat

Change = Callable[[str, Tensor], Tensor]  # of a weight, by its name


def changed(weights: GPT, change: Change) -> GPT:
    """A model of what `change` makes of each named weight, always in the same order."""

    def pair(name: str, both: Pair) -> Pair:
        """Of a weight and its bias."""
        weight, bias = both
        return change(f"{name}.weight", weight), change(f"{name}.bias", bias)

    def block(number: int, of: Block) -> Block:
        """Of all that a block holds."""
        made: dict[str, Any] = {}
        for field in fields(of):
            value, name = getattr(of, field.name), f"block {number}.{field.name}"
            made[field.name] = change(name, value) if field.name == "gain" else pair(name, value)
        return Block(**made)

    table = change("table", weights.table)
    positions = change("positions", weights.positions)
    blocks = [block(*each) for each in enumerate(weights.blocks)]
    return GPT(table, positions, blocks, pair("norm", weights.norm), weights.num_heads)


def shapes(weights: GPT) -> dict[str, tuple[int, ...]]:
    """By name, as a checkpoint has them: layers have the model's numbers, whatever the stage."""
    found: dict[str, tuple[int, ...]] = {}

    def note(name: str, tensor: Tensor) -> Tensor:
        shape = tuple(tensor.shape)
        found[name] = (3, shape[0] // 3, *shape[1:]) if ".qkv." in name else shape
        return tensor

    changed(weights, note)
    return found


def numbered(weights: GPT) -> GPT:
    """The model in which each number is its own number, counted through all weights."""
    count = 0

    def number(name: str, tensor: Tensor) -> Tensor:
        nonlocal count
        count += tensor.numel()
        return torch.arange(count - tensor.numel(), count).view(tensor.shape)

    return changed(weights, number)


def shards(tensors: Iterable[Tensor], numbers: Iterable[Tensor], weights: GPT) -> dict[str, Shard]:
    """Each tensor as a shard, a view of it, by the name of its weight.

    tensors: a rank's parameters, or anything of their shapes in their order, as Adam's means.
    numbers: the parameters of the same rank's layers, built in the same way of `numbered` weights.

    Raises:
        ValueError: a tensor is no box of a weight, or this rank has two of one weight.
    """
    first, starts = 0, {}
    for name, shape in shapes(weights).items():
        starts[first] = name, shape
        first += torch.Size(shape).numel()
    found: dict[str, Shard] = {}
    for tensor, number in zip(tensors, numbers, strict=True):
        begin = max(start for start in starts if start <= int(number.min()))
        name, shape = starts[begin]
        box = box_of(number - begin, name, shape)
        if name in found:
            raise ValueError(f"this rank holds two tensors of {name}: give each a name of its own")
        found[name] = Shard(tensor.view(box.sizes), shape, box.starts)
    return found


def flat_shards(tensors: Iterable[Tensor], flats: Iterable[Flat], what: str) -> dict[str, Shard]:
    """Each unit's flat shard, without the zeros at its end: boxes of one dimension.

    tensors: the flats' own shards, or anything of their sizes, as Adam's means. what: their name.
    """
    found = {}
    for number, (tensor, flat) in enumerate(zip(tensors, flats, strict=True)):
        count = sum(shape.numel() for shape in flat.shapes)
        start = min(flat.rank * len(tensor), count)
        mine = tensor[: min(len(tensor), count - start)]
        found[f"{what} of unit {number}"] = Shard(mine, (count,), (start,))
    return found


def box_of(numbers: Tensor, name: str, shape: tuple[int, ...]) -> Box:
    """The box of a tensor of that shape in which these of its numbers lie, row by row.

    Raises:
        ValueError: they are no box.
    """
    whole = torch.arange(torch.Size(shape).numel()).view(shape)
    low, high = (torch.unravel_index(end, shape) for end in (numbers.min(), numbers.max()))
    starts = tuple(map(int, low))
    sizes = tuple(int(b) - a + 1 for a, b in zip(starts, high, strict=True))
    inside = whole[tuple(slice(a, a + size) for a, size in zip(starts, sizes, strict=True))]
    if not torch.equal(inside.flatten(), numbers.flatten()):
        raise ValueError(f"what this rank holds of {name} {list(shape)} is no box of it")
    return Box(starts, sizes)
