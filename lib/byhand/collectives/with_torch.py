"""Torch's own eight collectives, called alike: a tensor in, what this rank ends with out.

The one-tensor calls have new names since torch 2.13, where the old ones warn.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

ALL_GATHER = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
REDUCE_SCATTER = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def torch_broadcast(tensor: Tensor, root: int) -> Tensor:
    """Overwrites every other rank's tensor with the root's."""
    dist.broadcast(tensor, src=root)
    return tensor


def torch_scatter(tensor: Tensor, root: int) -> Tensor:
    """Only the root names the shards; every rank brings room for one."""
    shards = list(tensor.split(1)) if dist.get_rank() == root else None
    shard = tensor.new_empty(1)
    dist.scatter(shard, shards, src=root)
    return shard


def torch_gather(shard: Tensor, root: int) -> Tensor | None:
    """Only the root brings room for the shards."""
    is_root = dist.get_rank() == root
    shards = [torch.empty_like(shard) for _ in range(dist.get_world_size())] if is_root else None
    dist.gather(shard, shards, dst=root)
    return torch.cat(shards) if shards else None


def torch_reduce(tensor: Tensor, root: int) -> Tensor | None:
    """The sum overwrites the root's tensor; what the others are left with means nothing."""
    dist.reduce(tensor, dst=root)
    return tensor if dist.get_rank() == root else None


def torch_all_gather(shard: Tensor) -> Tensor:
    """Every rank brings room for all the shards."""
    whole = shard.new_empty(dist.get_world_size() * len(shard))
    ALL_GATHER(whole, shard)
    return whole


def torch_reduce_scatter(tensor: Tensor) -> Tensor:
    """Every rank brings its tensor, and room for its shard of the sum."""
    shard = tensor.new_empty(len(tensor) // dist.get_world_size())
    REDUCE_SCATTER(shard, tensor)
    return shard


def torch_all_reduce(tensor: Tensor) -> Tensor:
    """The sum overwrites every rank's tensor."""
    dist.all_reduce(tensor)
    return tensor


def torch_all_to_all(tensor: Tensor) -> Tensor:
    """Row s goes to rank s; row r of what arrives is from rank r."""
    arrived = torch.empty_like(tensor)
    dist.all_to_all_single(arrived, tensor)
    return arrived


WITH_TORCH: dict[str, Callable] = {
    "broadcast": torch_broadcast,
    "scatter": torch_scatter,
    "gather": torch_gather,
    "reduce": torch_reduce,
    "all_gather": torch_all_gather,
    "reduce_scatter": torch_reduce_scatter,
    "all_reduce": torch_all_reduce,
    "all_to_all": torch_all_to_all,
}
