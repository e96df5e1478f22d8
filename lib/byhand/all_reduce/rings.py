"""The two halves of a ring all-reduce, around any list of ranks: what lecture 03 builds from.

`parts` are flat tensors, one for each rank of the ring, and the same sizes on every rank; both
functions change them in place. `ranks` are global ranks in the order of the ring, the caller's
among them. Each sends n-1 messages, n-1 of the n parts, to the next rank and to no other.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor


def reduce_scatter_around(parts: Sequence[Tensor], ranks: Sequence[int]) -> None:
    """Part j of rank number j of the ring becomes the sum of all ranks' part j.

    That sum starts on the rank after, and every rank adds its own as it passes. The other parts
    are left as partial sums.
    """
    n, me = len(ranks), ranks.index(dist.get_rank())
    for step in range(1, n):
        growing = parts[(me - step - 1) % n]
        arrived = torch.empty_like(growing)
        _exchange(parts[(me - step) % n], arrived, ranks, me)
        growing += arrived


def all_gather_around(parts: Sequence[Tensor], ranks: Sequence[int]) -> None:
    """Every part j becomes that of rank number j of the ring: each passes on what came last."""
    n, me = len(ranks), ranks.index(dist.get_rank())
    for step in range(n - 1):
        _exchange(parts[(me - step) % n], parts[(me - step - 1) % n], ranks, me)


def _exchange(outgoing: Tensor, incoming: Tensor, ranks: Sequence[int], me: int) -> None:
    """Send to the next rank of the ring while receiving from the one before."""
    sending = dist.isend(outgoing, ranks[(me + 1) % len(ranks)])
    dist.recv(incoming, ranks[(me - 1) % len(ranks)])
    sending.wait()
