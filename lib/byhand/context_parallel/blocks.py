"""Attention, a block of keys at a time: the online softmax, forward and backward.

    block_attention     y and log-sum-exp of some queries over some keys
    merge               two of those over different keys -> what attention over both would give
    block_backward      the gradients of one block, from y's and the final log-sum-exp
    attend, attend_backward    the same for the rectangle of a block that is seen at all

Softmax divides by a sum over *all* keys. So a block's y is its own weighted mean of values, and
its log-sum-exp says how much weight that mean has. With them no score need outlive its block.
Backward computes each block's scores again: exp(score - log-sum-exp) is the final probability.

Scores and log-sum-exp are in float32 at least, as in fused kernels: of 16 bits, a log-sum-exp would
be off by some hundredths, and every probability by as many of itself.

Shapes: B sequences, H heads of size d, s queries, k keys.
Sources: Milakov and Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from byhand.context_parallel.places import ALL, Seen

Grads = tuple[Tensor, Tensor, Tensor]


def block_attention(q: Tensor, k: Tensor, v: Tensor, masked: bool) -> tuple[Tensor, Tensor]:
    """q [B, H, s, d], k and v [B, H, k, d] -> y [B, H, s, d], log-sum-exp [B, H, s, 1].

    masked: query i sees keys 0 to i only, as among positions of one share.
    """
    scores = _scores(q, k, masked)
    top = scores.amax(dim=-1, keepdim=True)  # taken off, so that exp cannot overflow
    weights = scores.sub_(top).exp_()
    total = weights.sum(dim=-1, keepdim=True)
    return (weights.to(v.dtype) @ v) / total, total.log() + top


def merge(y: Tensor, lse: Tensor, other_y: Tensor, other_lse: Tensor) -> tuple[Tensor, Tensor]:
    """Attention over two sets of keys, from that over each: y [.., s, d], log-sum-exp [.., s, 1].

    Each y counts by its share of the whole sum of exponentials, which is at most 1, so nothing
    overflows. A side that has seen no key yet has log-sum-exp -inf; both must not.
    """
    both = torch.logaddexp(lse, other_lse)
    return (lse - both).exp_() * y + (other_lse - both).exp_() * other_y, both


def block_backward(
    grad_y: Tensor, q: Tensor, k: Tensor, v: Tensor, y: Tensor, lse: Tensor, masked: bool
) -> Grads:
    """This block's terms of grad_q [B, H, s, d], and of grad_k and grad_v [B, H, k, d].

    y, lse: over all keys, not this block's.
    """
    scale = 1 / math.sqrt(q.shape[-1])
    delta = (grad_y * y).sum(dim=-1, keepdim=True)  # Σ grad_p ∘ p over all keys, as y = p v
    p = _scores(q, k, masked).sub_(lse).exp_()
    grad_scores = (grad_y @ v.mT).sub_(delta).mul_(p).mul_(scale)
    return grad_scores @ k, grad_scores.mT @ q, p.to(q.dtype).mT @ grad_y


class Kernel(NamedTuple):
    """What computes a block: the two functions above, or two that give and take the same."""

    forward: Callable[[Tensor, Tensor, Tensor, bool], tuple[Tensor, Tensor]] = block_attention
    backward: Callable[..., Grads] = block_backward


BY_HAND = Kernel()


def nothing_yet(q: Tensor) -> tuple[Tensor, Tensor]:
    """y [B, H, s, d] and log-sum-exp [B, H, s, 1] of queries that have seen no key."""
    return torch.zeros_like(q), q.new_full((*q.shape[:-1], 1), -math.inf, dtype=_wide(q.dtype))


def attend(
    part: Seen | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    y: Tensor,
    lse: Tensor,
    kernel: Kernel = BY_HAND,
) -> None:
    """Merge into y and lse, in place, what the queries of `part` find among its keys."""
    if part is None:
        return
    i, j = (..., part.queries, ALL), (..., part.keys, ALL)
    y[i], lse[i] = merge(y[i], lse[i], *kernel.forward(q[i], k[j], v[j], part.masked))


def attend_backward(
    part: Seen | None,
    grad_y: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    y: Tensor,
    lse: Tensor,
    grad_q: Tensor,
    kernel: Kernel = BY_HAND,
) -> Tensor:
    """This rank's terms of grad_k and grad_v, [2, B, H, k, d] together. Adds to grad_q in place."""
    grads = k.new_zeros(2, *k.shape)
    if part is not None:
        i, j = (..., part.queries, ALL), (..., part.keys, ALL)
        inputs = grad_y[i], q[i], k[j], v[j], y[i], lse[i]
        terms = kernel.backward(*inputs, part.masked)
        grad_q[i] += terms[0]
        grads[0][j], grads[1][j] = terms[1:]
    return grads


def _scores(q: Tensor, k: Tensor, masked: bool) -> Tensor:
    scores = ((q / math.sqrt(q.shape[-1])) @ k.mT).to(_wide(q.dtype))  # [B, H, s, k]
    if masked:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores.masked_fill_(future, -math.inf)
    return scores


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)
