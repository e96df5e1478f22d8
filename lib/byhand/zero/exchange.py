"""A reduce-scatter that is an exchange and a sum: on CPUs faster than torch's, and its bytes fewer.

    from byhand.zero.exchange import exchange
    ShardedOptimizer(layers, optimizer, reduce_scatter=exchange)    nothing else changes

gloo's reduce-scatter is an all-reduce of which each rank keeps its shard, so it sends what stays
unused; the ledger counts a ring's bytes for it, as many as here. Here each rank sends every other
the terms of that one's shard, all at once, and adds up what arrives: S (n-1)/n bytes in one round.
Until the sum is made, all terms of a shard are held: S bytes more. (NCCL's, on GPUs,
is a ring that sends as little, and holds one term.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.model.shards import Group


@dataclass
class Exchange:
    """Terms that are under way; `wait` makes their sum."""

    mine: Tensor  # [k]: room for it
    arriving: Tensor  # [n, k]: row r is rank r's term
    work: dist.Work

    def wait(self) -> None:
        """Return when `mine` is the sum."""
        self.work.wait()
        torch.sum(self.arriving, dim=0, out=self.mine)


def exchange(mine: Tensor, whole: Tensor, group: Group = None) -> Exchange:
    """whole [n · k], partial -> mine [k], sharded, after wait(); mine may be a view of whole.

    Sends S (n-1)/n bytes per rank, where S is those of `whole`; holds S more until wait() is over.

    Raises:
        ValueError: `whole` has not n · k elements.
    """
    n, k = dist.get_world_size(group), len(mine)
    if len(whole) != n * k:
        raise ValueError(
            f"whole has {len(whole)} elements, and mine {k}: {n} ranks with equal shards have"
            f" {n} · {k} = {n * k}"
        )
    arriving = torch.empty_like(whole).view(n, k)
    work = dist.all_to_all_single(arriving.flatten(), whole, group=group, async_op=True)
    return Exchange(mine, arriving, work)
