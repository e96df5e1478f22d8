"""Gather all keys and values, then attend: the plain way, and Llama 3's.

One all-gather before the work, one reduce-scatter of gradients after it; nothing hides them, and
every rank holds the keys and values of the whole sequence. Where few key heads serve many query
heads, both are small. Gathered tensors are not kept: backward gathers again.

Shapes: B sequences, H heads of size d, S positions, s = S/n on each of the n ranks.
Bytes, with M those of k over all ranks: each rank sends 2 (n-1)/n · M forward, twice that backward.
Source: Llama 3, arXiv:2407.21783, section 3.3.2.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.collectives.with_torch import ALL_GATHER, REDUCE_SCATTER
from byhand.context_parallel.blocks import Grads, attend, attend_backward, nothing_yet
from byhand.context_parallel.places import ZIGZAG, seen
from byhand.context_parallel.ring import Group, Saved


def gathered_attention(
    q: Tensor, k: Tensor, v: Tensor, group: Group = None, causal: bool = True, layout: str = ZIGZAG
) -> tuple[Tensor, Saved]:
    """q, k, v [B, H, s, d], this rank's share of each -> y [B, H, s, d], its share.

    Sends 2 (n-1) times k's bytes: one all-gather of k and v together.

    >>> def attend(rank, world_size, x):
    ...     mine = share(x, dim=2)
    ...     gathered_attention(mine, mine, mine)
    >>> launch(attend, 2, (torch.ones(1, 2, 8, 4),)).ledger.count("all_gather", rank=0)
    1
    """
    rank, length = dist.get_rank(group), q.shape[-2]
    y, lse = nothing_yet(q)
    for owner, (their_k, their_v) in enumerate(gather(k, v, group)):
        attend(seen(rank, owner, length, layout, causal), q, their_k, their_v, y, lse)
    return y, Saved(q, k, v, y, lse, group, causal, layout)


def gathered_attention_backward(grad_y: Tensor, saved: Saved) -> Grads:
    """grad_y [B, H, s, d] -> grad_q, grad_k, grad_v [B, H, s, d], of this rank's positions.

    Sends 4 (n-1) times k's bytes: the all-gather again, and a reduce-scatter of as much.
    """
    q, k, v, y, lse, group, causal, layout, _ = saved
    rank, length = dist.get_rank(group), q.shape[-2]
    blocks, grad_q = gather(k, v, group), torch.zeros_like(q)
    grads = torch.empty_like(blocks)  # [n, 2, B, H, s, d], partial
    for owner, (their_k, their_v) in enumerate(blocks):
        part = seen(rank, owner, length, layout, causal)
        grads[owner] = attend_backward(part, grad_y, q, their_k, their_v, y, lse, grad_q)
    own = torch.empty_like(grads[0])
    REDUCE_SCATTER(own, grads.flatten(0, 1), group=group)
    return grad_q, *own


def gather(k: Tensor, v: Tensor, group: Group = None) -> Tensor:
    """[n, 2, B, H, s, d]: every rank's keys and values."""
    mine = torch.stack([k, v])
    blocks = mine.new_empty(2 * dist.get_world_size(group), *k.shape)
    ALL_GATHER(blocks, mine, group=group)
    return blocks.unflatten(0, (-1, 2))
