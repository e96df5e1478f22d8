"""A reduce-scatter that is an exchange in blocks: on CPUs faster than torch's, and its bytes fewer.

    from byhand.zero.exchange import exchange
    ShardedOptimizer(layers, optimizer, reduce_scatter=exchange)    nothing else changes

gloo's reduce-scatter is an all-reduce of which each rank keeps its shard, so it sends what stays
unused; the ledger counts a ring's bytes for it, as many as here. Here each rank sends every other
the terms of that one's shard, and adds up those that arrive for its own:

    hop 1    rank 0 → 1 → 2 → 3 → 0     the terms of the receiver's shard, block by block
    hop 2    rank 0 ⇄ 2, 1 ⇄ 3
    hop 3    rank 0 → 3 → 2 → 1 → 0

S (n-1)/n bytes a rank. A block is a megabyte, and is still in the processor's cache when it is
added; two are under way, so that one travels while the other is added. That is all the room it
takes. (NCCL's, on GPUs, is a ring that sends as little, and adds as it goes.)
"""

from __future__ import annotations

from collections import deque

import torch.distributed as dist
from torch import Tensor

from byhand.model.shards import Group

BLOCK_BYTES = 1 << 20
UNDER_WAY = 2  # blocks


class Exchange:
    """Terms that are under way; `wait` makes their sum.

    Two blocks travel by themselves; the others begin in `wait`, each in the room of one that came.
    So all ranks begin theirs in one order, and wait for them in one order.
    """

    def __init__(self, mine: Tensor, whole: Tensor, group: Group):
        """Begin with the first two blocks: see `exchange`."""
        n, rank = dist.get_world_size(group), dist.get_rank(group)
        shards, length = whole.chunk(n), BLOCK_BYTES // mine.element_size()
        mine.copy_(shards[rank])
        self.group = group
        self.to_come = (
            ((rank + hop) % n, term, (rank - hop) % n, block)
            for hop in range(1, n)
            for term, block in zip(
                shards[(rank + hop) % n].split(length), mine.split(length), strict=True
            )
        )
        rooms = mine.new_empty(UNDER_WAY, min(length, len(mine)))
        self.under_way = deque(map(self._begin, rooms, self.to_come))

    def _begin(self, room: Tensor, hop: tuple) -> tuple[list[dist.Work], Tensor, Tensor]:
        """One block's messages. Receives begin first, as in byhand.all_reduce."""
        receiver, term, sender, block = hop
        arriving = room[: len(block)]
        receive = dist.P2POp(dist.irecv, arriving, group=self.group, group_peer=sender)
        send = dist.P2POp(dist.isend, term, group=self.group, group_peer=receiver)
        return dist.batch_isend_irecv([receive, send]), room, block

    def wait(self) -> None:
        """Return when `mine` is the sum."""
        while self.under_way:
            messages, room, block = self.under_way.popleft()
            for message in messages:
                message.wait()
            block += room[: len(block)]
            self.under_way.extend(map(self._begin, [room], self.to_come))


def exchange(mine: Tensor, whole: Tensor, group: Group = None) -> Exchange:
    """whole [n · k], partial -> mine [k], sharded, after wait(); mine may be a view of whole.

    Sends S (n-1)/n bytes per rank, where S is those of `whole`.

    Raises:
        ValueError: `whole` has not n · k elements.
    """
    n, k = dist.get_world_size(group), len(mine)
    if len(whole) != n * k:
        raise ValueError(
            f"whole has {len(whole)} elements, and mine {k}: {n} ranks with equal shards have"
            f" {n} · {k} = {n * k}"
        )
    return Exchange(mine, whole, group)
