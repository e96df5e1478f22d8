"""Gather and product at once: a ring of messages, each under way while a shard is multiplied.

    gather_while    y = product(all tokens), one rank's tokens at a time as they arrive
    scatter_while   this rank's tokens of Σ_r product_r, one term at a time as the sum passes

A collective and the product that needs its result cannot overlap; a collective cut into rounds can,
each round with the product of what came in the round before. Of n products one is exposed, or of
n-1 messages: with c seconds a message and p a product, (n-1) max(c, p) + p in place of
(n-1) c + n p. The bytes are the collective's.

`product` is any function of tokens [..., S/n, I] -> [..., S/n, O], such as a linear layer's.
Sources: Wang et al. 2023, doi:10.1145/3567955.3567959; torch's async tensor parallelism.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.model.shards import Group, equal_shards

Product = Callable[[Tensor], Tensor]


def gather_while(x: Tensor, product: Product, group: Group = None) -> Tensor:
    """x [..., S/n, I] sharded by token -> product of all tokens [..., S, O], in rank order.

    Sends n-1 messages of x's bytes to the rank before, and multiplies a shard during each.
    """
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    y: list = [None] * world_size
    shard = x.contiguous()
    for distance in range(world_size):
        arriving = torch.empty_like(shard)
        last = distance == world_size - 1
        works = [] if last else _pass(shard, rank - 1, arriving, rank + 1, group)
        y[(rank + distance) % world_size] = product(shard)
        for work in works:
            work.wait()
        shard = arriving
    return torch.cat(y, dim=-2)


def scatter_while(x: Tensor, product: Product, group: Group = None) -> Tensor:
    """x [..., S, I] -> this rank's tokens of the sum over ranks of their products [..., S/n, O].

    Sends n-1 messages of the result's bytes to the rank after: the sum for a rank goes round and
    comes to it last. Each is under way while the term that will be added to it is multiplied.
    """
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    shards = x.split(equal_shards(x.shape[-2], "token", group), dim=-2)
    total = product(shards[rank - 1]).contiguous()
    for distance in range(2, world_size + 1):
        arriving = torch.empty_like(total)
        works = _pass(total, rank + 1, arriving, rank - 1, group)
        term = product(shards[rank - distance])
        for work in works:
            work.wait()
        total = arriving.add_(term)
    return total


def _pass(sent: Tensor, to: int, arriving: Tensor, source: int, group: Group) -> list[dist.Work]:
    """A message to one neighbour and one from the other, both under way.

    The receive comes first: gloo tells the neighbour that it is ready, and that word would queue
    behind the bytes that are sent.
    """
    n = dist.get_world_size(group)
    return dist.batch_isend_irecv(
        [
            dist.P2POp(dist.irecv, arriving, group=group, group_peer=source % n),
            dist.P2POp(dist.isend, sent, group=group, group_peer=to % n),
        ]
    )
