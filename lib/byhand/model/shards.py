"""A rank's shard of a tensor that every rank has whole; and tensors that lie in one flat one.

    shard(tensor, dim, group)         this rank's shard: of a batch, of a weight, of a sequence
    equal_shards(number, what, ...)   how many each rank has, where all must have the same
    views(flat, shapes)               the tensors that lie in a flat one, end to end
    copy_back(flat, tensors)          fill tensors with what lies there

None of them sends anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.words import counted

Group = dist.ProcessGroup | None


def shard(tensor: Tensor, dim: int = 0, group: Group = None, layout: str = "contiguous") -> Tensor:
    """This rank's shard, along `dim`, of a tensor that all n ranks of `group` have.

    contiguous: the ranks in order, a view; the first ranks may have one more, as tensor_split cuts.
    zigzag: of 2n chunks so cut, those numbered r and 2n-1-r; a copy.

    Raises:
        ValueError: there are fewer along `dim` than chunks, or there is no such layout.

    >>> launch(lambda rank, world_size: shard(torch.arange(7)).tolist(), 3).results
    [[0, 1, 2], [3, 4], [5, 6]]
    """
    if layout not in ("contiguous", "zigzag"):
        raise ValueError(f'there is no layout {layout!r}: choose "contiguous" or "zigzag"')
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    num_chunks = 2 * world_size if layout == "zigzag" else world_size
    if tensor.shape[dim] < num_chunks:
        raise ValueError(
            f"a tensor {list(tensor.shape)} is too small for {counted(world_size, 'rank')}: along "
            f"dimension {dim} it has {tensor.shape[dim]}, and {layout} shards need {num_chunks}"
        )
    chunks = tensor.tensor_split(num_chunks, dim)
    if layout == "zigzag":
        return torch.cat([chunks[rank], chunks[num_chunks - 1 - rank]], dim)
    return chunks[rank]


def equal_shards(number: int, what: str, group: Group = None, advice: str = "") -> int:
    """How many of `number` things each rank has, all ranks as many: "head", say, is `what`.

    Raises:
        ValueError: the number is not a multiple of the group's size, or 0; and that advice.
    """
    world_size = dist.get_world_size(group)
    if number % world_size or number == 0:
        raise ValueError(
            f"{counted(number, what)} cannot be split over {world_size} ranks: their number must "
            f"be a multiple of the number of ranks{advice}"
        )
    return number // world_size


def views(flat: Tensor, shapes: Iterable[torch.Size]) -> Iterator[Tensor]:
    """Views into `flat`, one of each shape, end to end; what is left of it is padding."""
    begin = 0
    for shape in shapes:
        yield flat[begin : begin + shape.numel()].view(shape)
        begin += shape.numel()


def copy_back(flat: Tensor, tensors: Iterable[Tensor]) -> None:
    """Fill the tensors, in place, with what lies in `flat` end to end."""
    tensors = list(tensors)
    for tensor, view in zip(tensors, views(flat, [t.shape for t in tensors]), strict=True):
        tensor.copy_(view)
