"""Wrong without dying: which rank's numbers differ from what must be equal, and whose are none.

Replicas that began equal and took equal steps are equal to the bit. So a rank whose memory or
arithmetic went wrong is found by comparing: not the numbers, which are many, but a fingerprint of
their bits, 8 bytes. Once in k steps that is a look at every weight and one small all-gather.

What may be compared is what must be equal: weights over a data-parallel group, gradients after
they are summed, whatever tensor-parallel ranks hold whole. Shards differ, and have no majority.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.checkpoint.files import bytes_of

Group = dist.ProcessGroup | None


def fingerprint(tensors: Iterable[Tensor]) -> int:
    """32 bits that depend on every bit of the tensors, on their order, shapes and dtypes.

    Any one changed bit changes it; other changes go unseen once in 4 billion. Of the numbers row
    by row, however they lie in memory. -0.0 is not 0.0, and a nan is equal to itself. CRC-32, on
    the CPU; a GPU would add up weighted words where they are.

    >>> weight = torch.zeros(1000)
    >>> before = fingerprint([weight])
    >>> weight[500] = 1e-30
    >>> before == fingerprint([weight])
    False
    """
    found = 0
    for tensor in tensors:
        found = zlib.crc32(f"{tensor.dtype} {list(tensor.shape)}".encode(), found)
        found = zlib.crc32(bytes_of(tensor), found)
    return found


def differing(tensors: Iterable[Tensor], group: Group = None) -> list[int]:
    """The group ranks whose tensors are not those of the majority; on every rank the same list.

    All of them where no more than half agree: two ranks that differ cannot say which is wrong.
    Sends 8 (n-1) bytes a rank: one all-gather of an int64 of each.

    >>> def compare(rank, world_size):
    ...     return differing([torch.full((4,), 1.0 if rank != 2 else 1.0001)])
    >>> launch(compare, 4).results[0]
    [2]
    """
    found = gathered(fingerprint(tensors), group)
    value, votes = Counter(found).most_common(1)[0]
    wrong = [rank for rank, theirs in enumerate(found) if theirs != value]
    return wrong if 2 * votes > len(found) else list(range(len(found)))


def not_finite(tensors: Iterable[Tensor], group: Group = None) -> dict[int, int]:
    """By group rank, how many numbers are infinite or nan, where any is; on every rank the same.

    Asked of gradients before they are summed: afterwards every rank has the nan of one. Sends what
    `differing` sends.

    >>> def look(rank, world_size):
    ...     return not_finite([torch.tensor([1.0, float("nan") if rank == 1 else 2.0])])
    >>> launch(look, 3).results[0]
    {1: 1}
    """
    count = sum(int((~tensor.isfinite()).sum()) for tensor in tensors)
    return {rank: one for rank, one in enumerate(gathered(count, group)) if one}


def gathered(number: int, group: Group) -> list[int]:
    """Every rank's number, by group rank."""
    device = "cuda" if dist.get_backend(group) == "nccl" else "cpu"
    mine = torch.tensor([number], dtype=torch.int64, device=device)
    found = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(found, mine, group=group)
    return [int(one) for one in found]
