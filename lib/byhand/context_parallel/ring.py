"""Ring attention: queries stay, keys and values travel once around the ring.

    share(x, 1)                              this rank's positions of a whole sequence
    ring_attention(q, k, v)                  n rounds: attend to a block, while the next is coming
    ring_attention_backward(grad_y, saved)   the blocks go round again; their gradients come home

In round t, rank r holds the keys and values of rank r - t. It merges what its queries find there
into y (byhand.context_parallel.blocks), so no rank ever holds more than two blocks of keys, or
scores of more than s x s. Backward computes scores again. The gradient of a block is a sum with a
term on every rank: it starts at the owner's neighbour, collects a term on each rank, and ends at
its owner, which adds its own.

Shapes: B sequences, H heads of size d, S positions, s = S/n on each of the n ranks of `group`.
Bytes, with M those of k over all ranks: each rank sends 2 (n-1)/n · M forward, twice that backward.
Source: Liu et al. 2023, arXiv:2310.01889. Simplified: dense blocks, as many key heads as queries'.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.context_parallel.blocks import (
    BY_HAND,
    Grads,
    Kernel,
    attend,
    attend_backward,
    nothing_yet,
)
from byhand.context_parallel.places import ZIGZAG, chunk_length, seen
from byhand.model.shards import Group, shard


class Saved(NamedTuple):
    """What backward needs: five tensors, how the ranks share them, and what computes a block."""

    q: Tensor
    k: Tensor
    v: Tensor
    y: Tensor
    lse: Tensor
    group: Group
    causal: bool
    layout: str
    kernel: Kernel = BY_HAND


def share(tensor: Tensor, dim: int, group: Group = None, layout: str = ZIGZAG) -> Tensor:
    """`shard` of a sequence: this rank's positions of what every rank has; `dim` counts positions.

    Raises:
        ValueError: the positions cannot be cut into equal chunks, or there is no such layout.

    >>> launch(lambda rank, _: share(torch.arange(8), dim=0).tolist(), 2).results
    [[0, 1, 6, 7], [2, 3, 4, 5]]
    >>> launch(lambda rank, _: share(torch.arange(8), 0, layout="contiguous").tolist(), 2).results
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    chunk_length(tensor.shape[dim], dist.get_world_size(group), layout)  # all shares are equal
    return shard(tensor, dim, group, layout).contiguous()  # so that it can be sent


def ring_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    group: Group = None,
    causal: bool = True,
    layout: str = ZIGZAG,
    kernel: Kernel = BY_HAND,
) -> tuple[Tensor, Saved]:
    """q, k, v [B, H, s, d], this rank's share of each -> y [B, H, s, d], its share.

    causal: a position sees those before it in the whole *sequence*, and itself. kernel: what
    computes a block, here and in backward: BY_HAND, or fused.FUSED.
    Sends 2 (n-1) times k's bytes: n-1 messages of k and v together, each under way while the
    block before it is worked on.

    Raises:
        ValueError: zigzag shares of an odd number of positions, or no such layout.

    >>> def equal(rank, world_size, x):
    ...     mine = share(x, dim=2)
    ...     whole = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    ...     return ring_attention(mine, mine, mine)[0].allclose(share(whole, dim=2))
    >>> launch(equal, 3, (torch.randn(1, 2, 12, 4, dtype=torch.float64),)).results
    [True, True, True]
    """
    rank, length = dist.get_rank(group), q.shape[-2]
    y, lse = nothing_yet(q)
    for owner, (their_k, their_v) in around(torch.stack([k, v]), group):
        attend(seen(rank, owner, length, layout, causal), q, their_k, their_v, y, lse, kernel)
    return y, Saved(q, k, v, y, lse, group, causal, layout, kernel)


def ring_attention_backward(grad_y: Tensor, saved: Saved) -> Grads:
    """grad_y [B, H, s, d] -> grad_q, grad_k, grad_v [B, H, s, d], of this rank's positions.

    Sends 4 (n-1) times k's bytes: keys and values go round as in forward, and their gradients,
    one round behind, as often.

    >>> def train(rank, world_size, x):
    ...     mine = share(x, dim=2)
    ...     y, saved = ring_attention(mine, mine, mine)
    ...     ring_attention_backward(y, saved)
    >>> run = launch(train, 2, (torch.ones(1, 2, 8, 4),))  # a share of k has 128 bytes
    >>> run.ledger.sent_bytes("send", rank=0)  # 256 forward, 512 backward
    768
    """
    q, k, v, y, lse, group, causal, layout, kernel = saved
    rank, length = dist.get_rank(group), q.shape[-2]
    grad_q, home = torch.zeros_like(q), Homeward(group)
    for owner, (their_k, their_v) in around(torch.stack([k, v]), group):
        part = seen(rank, owner, length, layout, causal)
        home.add(attend_backward(part, grad_y, q, their_k, their_v, y, lse, grad_q, kernel))
    return grad_q, *home.arrived()


def around(block: Tensor, group: Group = None) -> Iterator[tuple[int, Tensor]]:
    """Yield (owner, block) n times: this rank's own block first, then those of r-1, r-2, ...

    The next block travels while the caller works on the one it was given. Sends n-1 blocks.
    """
    rank, n = dist.get_rank(group), dist.get_world_size(group)
    block = block.contiguous()  # so that it can be sent
    for number in range(n):
        passing = Passing(block, group) if number < n - 1 else None
        yield (rank - number) % n, block
        if passing:
            block = passing.wait()


class Passing:
    """A tensor on its way to the next rank, and the one that comes from the rank before."""

    def __init__(self, tensor: Tensor, group: Group = None):
        """Send and receive at once, and return at once: leave `tensor` unchanged until `wait`."""
        rank, n = dist.get_rank(group), dist.get_world_size(group)
        self.coming = torch.empty_like(tensor)
        send = dist.P2POp(dist.isend, tensor, group=group, group_peer=(rank + 1) % n)
        take = dist.P2POp(dist.irecv, self.coming, group=group, group_peer=(rank - 1) % n)
        self.pending = dist.batch_isend_irecv([take, send])

    def wait(self) -> Tensor:
        """The tensor from the rank before, when both are through."""
        for work in self.pending:
            work.wait()
        return self.coming


class Homeward:
    """Sums with a term on every rank, each of which ends on the rank it belongs to.

    `add` this rank's terms of the sums of rank r, r-1, r-2, ..., the order of `around`.
    """

    def __init__(self, group: Group = None):
        self.group = group
        self.own: Any = None
        self.passing: Passing | None = None

    def add(self, term: Tensor) -> None:
        """Add to what came from the rank before, and pass it on. The tensor is no more yours."""
        if self.own is None:
            self.own = term  # stays: the others' terms come in the end
            return
        if self.passing:
            term += self.passing.wait()
        self.passing = Passing(term, self.group)

    def arrived(self) -> Tensor:
        """The sum that belongs to this rank. n-1 messages have been sent in all."""
        return self.own + self.passing.wait() if self.passing else self.own
