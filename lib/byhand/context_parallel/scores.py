"""RingQK and RingAV: the first ring attention, which keeps every score.

    ring_qk(q, k)    keys go round: this rank's queries by all keys, one block of columns a round
    softmax          needs whole rows, and has them
    ring_av(p, v)    values go round: each block of columns is multiplied by its values

As many bytes as byhand.context_parallel.ring, in two rings instead of one; but each rank holds
s · S scores a head, where the online softmax holds s · s. Nothing of the mask is skipped.

Shapes: B sequences, H heads of size d, S positions, s = S/n on each of the n ranks.
Bytes, with M those of k over all ranks: each rank sends 2 (n-1)/n · M forward, twice that backward.
Source: Li et al. 2021, arXiv:2105.13120, section 3.2.
"""

from __future__ import annotations

import math

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.context_parallel.blocks import Grads
from byhand.context_parallel.places import ZIGZAG, positions
from byhand.context_parallel.ring import Group, Homeward, around
from byhand.model.attention import softmax, softmax_backward


def scores_attention(
    q: Tensor, k: Tensor, v: Tensor, group: Group = None, causal: bool = True, layout: str = ZIGZAG
) -> tuple[Tensor, tuple]:
    """q, k, v [B, H, s, d], this rank's share of each -> y [B, H, s, d], its share.

    Saves q, k, v and the probabilities [B, H, s, S], columns by owner.
    """
    scores = ring_qk(q, k, group)
    if causal:
        scores.masked_fill_(_future(q.shape[-2], group, layout).to(q.device), -math.inf)
    p = softmax(scores)
    return ring_av(p, v, group), (q, k, v, p, group)


def scores_attention_backward(grad_y: Tensor, saved: tuple) -> Grads:
    """grad_y [B, H, s, d] -> grad_q, grad_k, grad_v [B, H, s, d], of this rank's positions.

    Values go round with grad_v one round behind; then keys, with grad_k.
    """
    q, k, v, p, group = saved
    s, home = q.shape[-2], Homeward(group)
    grad_p, grad_q = torch.empty_like(p), torch.zeros_like(q)
    for owner, their_v in around(v, group):
        columns = slice(owner * s, (owner + 1) * s)
        grad_p[..., columns] = grad_y @ their_v.mT
        home.add(p[..., columns].mT @ grad_y)
    grad_v, home = home.arrived(), Homeward(group)
    grad_scores = softmax_backward(grad_p, p) / math.sqrt(q.shape[-1])
    for owner, their_k in around(k, group):
        block = grad_scores[..., owner * s : (owner + 1) * s]
        grad_q += block @ their_k
        home.add(block.mT @ q)
    return grad_q, home.arrived(), grad_v


def ring_qk(q: Tensor, k: Tensor, group: Group = None) -> Tensor:
    """q, k [B, H, s, d], shares -> scores [B, H, s, S], of this rank's queries. Sends n-1 k."""
    q, blocks = q / math.sqrt(q.shape[-1]), {}
    for owner, their_k in around(k, group):
        blocks[owner] = q @ their_k.mT
    return torch.cat([blocks[owner] for owner in range(len(blocks))], dim=-1)


def ring_av(p: Tensor, v: Tensor, group: Group = None) -> Tensor:
    """p [B, H, s, S], v [B, H, s, d], shares -> y [B, H, s, d]. Sends n-1 times v."""
    y, s = torch.zeros_like(v), v.shape[-2]
    for owner, their_v in around(v, group):
        y += p[..., owner * s : (owner + 1) * s] @ their_v
    return y


def _future(length: int, group: Group, layout: str) -> Tensor:
    """[s, S]: which keys, by owner, come after each of this rank's queries in the *sequence*."""
    n = dist.get_world_size(group)
    places = torch.tensor([positions(n * length, owner, n, layout) for owner in range(n)])
    mine = places[dist.get_rank(group)]
    return places.flatten() > mine[:, None]
