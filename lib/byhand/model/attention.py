"""Multi-head softmax attention on one device, with its backward pass written out.

    attention(q, k, v)                        y = softmax(q kᵀ / √d) v
    attention_backward(grad_y, saved)         -> grad_q, grad_k, grad_v
    MultiHeadAttention                        with the linear layers around it; a layer as in mlp

Each head is alone with its own queries, keys and values: split by heads, attention sends nothing.
Simplified: the probabilities are kept for the backward pass, S² numbers a head, which
flash attention (arXiv:2205.14135) computes again instead; no dropout; no biases inside the softmax.

Shapes: B sequences, S positions, H heads of size d, D = H·d features.
Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from byhand.model.mlp import Linear


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


class MultiHeadAttention:
    """y = attention of x's heads, mixed: x [B, S, D] -> queries, keys, values -> heads -> y.

    `qkv` makes queries, keys and values of all heads in one product; `out` mixes the heads. Any two
    layers with model.mlp's methods will do: byhand.tensor_parallel puts in two that are split.
    """

    def __init__(self, qkv: Any, out: Any, num_heads: int, causal: bool = False):
        """qkv takes D features to 3·H·d (all queries, then keys, then values); out H·d to D.

        Raises:
            ValueError: the features of qkv do not make 3 · num_heads heads.
        """
        check_heads(qkv.weight.shape[0], num_heads)
        self.qkv, self.out, self.num_heads, self.causal = qkv, out, num_heads, causal

    @classmethod
    def from_weights(
        cls,
        qkv: tuple[Tensor, Tensor],
        out: tuple[Tensor, Tensor],
        num_heads: int,
        causal: bool = False,
    ) -> MultiHeadAttention:
        """From (weight, bias) pairs: qkv [3D, D], [3D]; out [D, D], [D]."""
        return MultiHeadAttention(Linear(*qkv), Linear(*out), num_heads, causal)

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
        """x [B, S, D] -> y [B, S, D]; saves what the two linear layers and the heads save."""
        qkv, saved_qkv = self.qkv.forward(x.flatten(0, 1))  # [B·S, 3·H·d]
        qkv = qkv.unflatten(0, x.shape[:2]).unflatten(2, (3, self.num_heads, -1))
        mixed, saved = attention(*qkv.permute(2, 0, 3, 1, 4), self.causal)  # [B, H, S, d]
        y, saved_out = self.out.forward(mixed.transpose(1, 2).flatten(2).flatten(0, 1))
        return y.view(x.shape), (saved_qkv, saved, saved_out)

    def backward(self, grad_y: Tensor, saved: tuple[Any, ...]) -> Tensor:
        """grad_y [B, S, D] -> grad_x [B, S, D]. Adds to both layers' gradients."""
        saved_qkv, saved_heads, saved_out = saved
        grad_mixed = self.out.backward(grad_y.flatten(0, 1), saved_out)
        grad_qkv = self._backward_heads(grad_mixed, saved_heads)
        return self.qkv.backward(grad_qkv, saved_qkv).view(grad_y.shape)

    def backward_first(self, grad_y: Tensor, saved: tuple[Any, ...]) -> None:
        """As backward, where nobody needs grad_x."""
        saved_qkv, saved_heads, saved_out = saved
        grad_mixed = self.out.backward(grad_y.flatten(0, 1), saved_out)
        self.qkv.backward_first(self._backward_heads(grad_mixed, saved_heads), saved_qkv)

    def backward_input(self, grad_y: Tensor, saved: tuple[Any, ...]) -> tuple[Tensor, tuple]:
        """grad_y [B, S, D] -> grad_x [B, S, D]; keeps what the two layers keep."""
        saved_qkv, saved_heads, saved_out = saved
        grad_mixed, kept_out = self.out.backward_input(grad_y.flatten(0, 1), saved_out)
        grad_qkv = self._backward_heads(grad_mixed, saved_heads)
        grad_x, kept_qkv = self.qkv.backward_input(grad_qkv, saved_qkv)
        return grad_x.view(grad_y.shape), (kept_qkv, kept_out)

    def backward_weight(self, kept: tuple) -> None:
        """Add to both layers' gradients."""
        self.qkv.backward_weight(kept[0])
        self.out.backward_weight(kept[1])

    def parameters(self) -> list[Tensor]:
        """qkv's weight and bias, then out's."""
        return self.qkv.parameters() + self.out.parameters()

    def gradients(self) -> list[Tensor]:
        """Their gradients, in the same order."""
        return self.qkv.gradients() + self.out.gradients()

    def keep_gradients_in(self, tensors: list[Tensor]) -> None:
        """From now on keep the gradients in these tensors, in the same order."""
        self.qkv.keep_gradients_in(tensors[:2])
        self.out.keep_gradients_in(tensors[2:])

    def _backward_heads(self, grad_mixed: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        """grad of the joined heads [B·S, H·d] -> grad_qkv [B·S, 3·H·d]."""
        batch, heads, positions, _ = saved[0].shape
        grad = grad_mixed.unflatten(1, (heads, -1)).unflatten(0, (batch, positions))
        grads = attention_backward(grad.transpose(1, 2), saved)  # each [B, H, S, d]
        return torch.stack(grads).permute(1, 3, 0, 2, 4).flatten(2).flatten(0, 1)


def check_heads(num_features: int, num_heads: int) -> None:
    """Refuse features of queries, keys and values together that do not make whole heads."""
    if num_features % (3 * num_heads):
        raise ValueError(
            f"{num_features} features of queries, keys and values do not make {num_heads} heads: "
            f"they must be a multiple of 3 · {num_heads}"
        )
