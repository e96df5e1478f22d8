"""Multi-head softmax attention on one device, with its backward pass written out.

    attention(q, k, v)                        y = softmax(q kᵀ / √d) v
    attention_backward(grad_y, saved)         -> grad_q, grad_k, grad_v
    Heads                                     the same as a layer
    MultiHeadAttention                        with the linear layers around it

Each head is alone with its own queries, keys and values: split by heads, attention sends nothing.
Simplified: the probabilities are kept for the backward pass, S² numbers a head, which
flash attention (arXiv:2205.14135) computes again instead; no dropout; no biases inside the softmax.

Shapes: B sequences, S positions, H heads of size d, D = H·d features.
Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from byhand.model.layer import Layer
from byhand.model.mlp import MLP, Linear


def attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """q [B, H, S, d], k and v [B, H, K, d] -> y [B, H, S, d]; saves q, k, v, probabilities.

    With `causal`, position s sees positions 0 to s only.
    """
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # [B, H, S, K]
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores.masked_fill_(future, -math.inf)
    probabilities = softmax(scores)
    return probabilities @ v, (q, k, v, probabilities)


def attention_backward(grad_y: Tensor, saved: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """grad_y [B, H, S, d] -> grad_q, grad_k, grad_v, each of its tensor's shape.

    What the mask hid has probability 0, hence gradient 0: the mask is not needed again.
    """
    q, k, v, probabilities = saved
    grad_v = probabilities.mT @ grad_y
    grad_scores = softmax_backward(grad_y @ v.mT, probabilities) / math.sqrt(q.shape[-1])
    return grad_scores @ k, grad_scores.mT @ q, grad_v


def softmax(scores: Tensor) -> Tensor:
    """exp(scores), divided by its sum along the last dimension.

    The largest is taken off first: the quotient stays the same, and exp cannot overflow.
    """
    weights = (scores - scores.amax(dim=-1, keepdim=True)).exp_()
    return weights.div_(weights.sum(dim=-1, keepdim=True))


def softmax_backward(grad_p: Tensor, p: Tensor) -> Tensor:
    """grad_p, p [..., K] -> grad_scores = p ∘ (grad_p - Σ_k grad_p ∘ p)."""
    return p * (grad_p - (grad_p * p).sum(dim=-1, keepdim=True))


class Heads(Layer):
    """The attention of every head by itself; no parameters."""

    def __init__(self, num_heads: int, causal: bool = False):
        self.num_heads, self.causal = num_heads, causal

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """x [B, S, 3·H·d], all queries, then keys, then values -> y [B, S, H·d]."""
        q, k, v = x.unflatten(2, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)  # [B, H, S, d]
        y, saved = attention(q, k, v, self.causal)
        return y.transpose(1, 2).flatten(2), saved

    def backward_input(self, grad_y: Tensor, saved: tuple[Tensor, ...]) -> tuple[Tensor, None]:
        """grad_y [B, S, H·d] -> grad_x [B, S, 3·H·d]."""
        grad_heads = grad_y.unflatten(2, (self.num_heads, -1)).transpose(1, 2)
        grads = attention_backward(grad_heads, saved)  # each [B, H, S, d]
        return torch.stack(grads).permute(1, 3, 0, 2, 4).flatten(2), None


class MultiHeadAttention(MLP):
    """y = attention of x's heads, mixed: x [B, S, D] -> queries, keys, values -> heads -> y.

    `qkv` makes queries, keys and values of all heads in one product; `out` mixes the heads. Any two
    linear layers will do: byhand.tensor_parallel puts in two that are split.
    """

    def __init__(self, qkv: Linear, out: Linear, num_heads: int, causal: bool = False):
        """qkv takes D features to 3·H·d (all queries, then keys, then values); out H·d to D.

        Raises:
            ValueError: the features of qkv do not make 3 · num_heads heads.
        """
        check_heads(qkv.weight.shape[0], num_heads)
        self.qkv, self.heads, self.out = qkv, Heads(num_heads, causal), out
        super().__init__([self.qkv, self.heads, self.out])

    @classmethod
    def from_weights(  # type: ignore[override] # of other weights than an MLP's
        cls,
        qkv: tuple[Tensor, Tensor],
        out: tuple[Tensor, Tensor],
        num_heads: int,
        causal: bool = False,
    ) -> MultiHeadAttention:
        """From (weight, bias) pairs: qkv [3D, D], [3D]; out [D, D], [D]."""
        return MultiHeadAttention(Linear(*qkv), Linear(*out), num_heads, causal)

    @property
    def num_heads(self) -> int:
        """H, of this rank where the heads are split."""
        return self.heads.num_heads

    @num_heads.setter
    def num_heads(self, number: int) -> None:
        self.heads.num_heads = number


def check_heads(num_features: int, num_heads: int) -> None:
    """Refuse features of queries, keys and values together that do not make whole heads."""
    if num_features % (3 * num_heads):
        raise ValueError(
            f"{num_features} features of queries, keys and values do not make {num_heads} heads: "
            f"they must be a multiple of 3 · {num_heads}"
        )
