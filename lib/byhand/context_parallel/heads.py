"""Ulysses: an all-to-all gives each rank all positions of some heads, and another one takes back.

    ulysses_attention   positions -> heads, attention as on one device, heads -> positions
    mixed_attention     Ulysses within groups of ranks, and a ring between them

Heads do not need each other, so a rank that has a head whole needs nothing more. An all-to-all
sends 1/n of the tensor's share to each rank: the bytes of a rank *fall* with the number of ranks,
where a ring's do not. But there must be as many heads as ranks, and nothing hides the messages.

Shapes: B sequences, H heads of size d, S positions, s = S/n on each of the n ranks.
Bytes, with M those of k over all ranks: each rank sends 4 (n-1)/n² · M forward, as many backward.
Sources: Jacobs et al. 2023, arXiv:2309.14509; Fang and Zhao 2024, arXiv:2405.07719 (the mix).
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.context_parallel.blocks import Grads, block_attention, block_backward
from byhand.context_parallel.places import CONTIGUOUS, ZIGZAG
from byhand.context_parallel.ring import Saved, ring_attention, ring_attention_backward
from byhand.model.shards import Group, equal_shards

Kept = tuple[Saved, Group]


def ulysses_attention(
    q: Tensor, k: Tensor, v: Tensor, group: Group = None, causal: bool = True
) -> tuple[Tensor, Saved]:
    """q, k, v [B, H, s, d], contiguous shares -> y [B, H, s, d], this rank's share.

    Sends 4 (n-1)/n times k's share: two all-to-alls, one of q, k and v together, one of y.
    Saves q, k, v and y of all positions of H/n heads.

    Raises:
        ValueError: the heads are not a multiple of the ranks.

    >>> def attend(rank, world_size, x):
    ...     mine = share(x, dim=2, layout="contiguous")
    ...     y, (q, *_) = ulysses_attention(mine, mine, mine)
    ...     return tuple(y.shape), tuple(q.shape)
    >>> run = launch(attend, 2, (torch.ones(1, 4, 8, 16),))
    >>> run.results[0], run.ledger.count("all_to_all", rank=0)
    (((1, 4, 4, 16), (1, 2, 8, 16)), 2)
    """
    q, k, v = to_heads(torch.stack([q, k, v]), group)  # [B, H/n, S, d] each
    y, lse = block_attention(q, k, v, causal)
    return to_positions(y, group), Saved(q, k, v, y, lse, group, causal, CONTIGUOUS)


def ulysses_attention_backward(grad_y: Tensor, saved: Saved) -> Grads:
    """grad_y [B, H, s, d] -> grad_q, grad_k, grad_v [B, H, s, d], of this rank's positions.

    Sends what forward sends: the two all-to-alls change places.
    """
    q, k, v, y, lse, group, causal, *_ = saved
    grad_y = to_heads(grad_y, group)
    grads = block_backward(grad_y, q, k, v, y, lse, causal)
    return tuple(to_positions(torch.stack(grads), group))


def to_heads(x: Tensor, group: Group = None) -> Tensor:
    """x [..., H, s, d], some positions of all heads -> [..., H/n, S, d], all of some heads.

    One all-to-all: sends (n-1)/n of x.
    """
    own = equal_shards(x.shape[-3], "head", group, "; a ring takes any")
    by_heads = x.unflatten(-3, (-1, own)).movedim(-4, 0)  # one for each rank
    return _all_to_all(by_heads, group).movedim(0, -3).flatten(-3, -2)


def to_positions(x: Tensor, group: Group = None) -> Tensor:
    """x [..., H/n, S, d], all positions of some heads -> [..., H, s, d], some of all heads.

    One all-to-all: sends (n-1)/n of x.
    """
    n = dist.get_world_size(group)
    by_positions = x.unflatten(-2, (n, -1)).movedim(-3, 0)  # [n, ..., H/n, s, d]
    return _all_to_all(by_positions, group).movedim(0, -4).flatten(-4, -3)


def _all_to_all(shards: Tensor, group: Group) -> Tensor:
    """shards [n, ...], one for each rank -> [n, ...], one from each rank."""
    shards = shards.contiguous()
    received = torch.empty_like(shards)
    dist.all_to_all_single(received, shards, group=group)
    return received


def mixed_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    inner: Group,
    outer: Group,
    causal: bool = True,
    layout: str = ZIGZAG,
) -> tuple[Tensor, Kept]:
    """Ulysses over `inner`, a ring over `outer`: q, k, v, y [B, H, s, d], this rank's share.

    The shares: `share(share(x, dim, outer, layout), dim, inner, "contiguous")`. With u ranks in
    `inner`, the ring's messages are of H/u heads of u·s positions, as large as before.

    Raises:
        ValueError: the heads are not a multiple of the ranks of `inner`.
    """
    q, k, v = to_heads(torch.stack([q, k, v]), inner)  # [B, H/u, u·s, d]
    y, saved = ring_attention(q, k, v, outer, causal, layout)
    return to_positions(y, inner), (saved, inner)


def mixed_attention_backward(grad_y: Tensor, saved: Kept) -> Grads:
    """grad_y [B, H, s, d] -> grad_q, grad_k, grad_v [B, H, s, d], of this rank's positions."""
    ring, inner = saved
    grads = ring_attention_backward(to_heads(grad_y, inner), ring)
    return tuple(to_positions(torch.stack(grads), inner))
