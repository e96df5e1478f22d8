"""What a transformer has beside attention and linear layers, each backward pass written out.

    Embedding    token + position; the token table is *tied*: the head multiplies by it again
    LayerNorm    over all features; QKNorm: over each head's queries and keys by themselves
    Residual     y = x + inner(x)
    TiedHead     y = x Eᵀ, the scores of the tokens

byhand.model.gpt puts them together.
Simplified: no dropout; the table is whole on every rank that has it.

Shapes: B sequences, S positions, V tokens, D features, H heads.
Sources: Radford et al. 2019 (GPT-2); Press and Wolf 2017, arXiv:1608.05859 (tied weights);
Ba et al. 2016, arXiv:1607.06450 (LayerNorm); Zhang and Sennrich 2019, arXiv:1910.07467 (RMSNorm);
Henry et al. 2020, arXiv:2010.04245 (norms of queries and keys).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from byhand.model.layer import PARTIAL, REPLICATED, TIED, Layer
from byhand.model.mlp import MLP

EPSILON = 1e-5  # below a variance, so that nothing is divided by 0
Pair = tuple[Tensor, Tensor]


class Embedding(Layer):
    """y[b, s] = E[tokens[b, s]] + positions[s], with E [V, D]."""

    holds = {"table": TIED, "positions": REPLICATED}

    def __init__(self, table: Tensor, positions: Tensor):
        """Keep copies of the table E [V, D] and of the positions [S, D]."""
        self.table, self.positions = table.clone(), positions.clone()
        self.grad_table, self.grad_positions = torch.zeros_like(table), torch.zeros_like(positions)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """tokens [B, S], whole numbers below V -> y [B, S, D]; saves the tokens."""
        return self.table[tokens] + self.positions[: tokens.shape[1]], tokens

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[None, Pair]:
        """grad_y [B, S, D] -> nothing, for tokens have no gradient; keeps grad_y and the tokens."""
        return None, (grad_y, saved)

    def backward_weight(self, kept: Pair) -> None:
        """Add to the gradients of the table and of the positions."""
        grad_y, tokens = kept
        self.grad_table.index_add_(0, tokens.flatten(), grad_y.flatten(0, 1))
        self.grad_positions[: tokens.shape[1]] += grad_y.sum(dim=0)


class TiedHead(Layer):
    """y = x Eᵀ, where E [V, D] is the embedding's table: one parameter, used twice."""

    def __init__(self, table: Tensor, embedding: Embedding | None = None):
        """With `embedding`, its table is used; else, on another stage, a copy of `table`."""
        self.owner = self if embedding is None else embedding
        if embedding is None:
            self.holds = {"table": TIED}
            self.table, self.grad_table = table.clone(), torch.zeros_like(table)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, S, D] -> y [B, S, V]; saves x."""
        return x @ self.owner.table.T, x

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, Pair]:
        """grad_y [B, S, V] -> grad_x [B, S, D]; keeps grad_y and x."""
        return grad_y @ self.owner.table, (grad_y, saved)

    def backward_weight(self, kept: Pair) -> None:
        """Add to the table's gradient."""
        grad_y, x = kept
        self.owner.grad_table.addmm_(grad_y.flatten(0, 1).T, x.flatten(0, 1))


class RMSNorm(Layer):
    """y = g ∘ x / √(mean of x²), the mean over the last dimension."""

    holds = {"gain": REPLICATED}

    def __init__(self, gain: Tensor):
        """Keep a copy of the gain [D], or of any shape that x can be multiplied by."""
        self.gain, self.grad_gain = gain.clone(), torch.zeros_like(gain)

    def forward(self, x: Tensor) -> tuple[Tensor, Pair]:
        """x [..., D] -> y, of the same shape; saves 1/√ of each mean, and x over it."""
        scale = x.square().mean(dim=-1, keepdim=True).add_(EPSILON).rsqrt_()
        normed = x * scale
        return normed * self.gain, (scale, normed)

    def backward_input(self, grad_y: Tensor, saved: Pair) -> tuple[Tensor, Pair]:
        """grad_y -> grad_x = scale · (h - n · mean(h ∘ n)), with h = grad_y ∘ g and n x normed."""
        scale, normed = saved
        grad = grad_y * self.gain
        grad = scale * (grad - normed * (grad * normed).mean(dim=-1, keepdim=True))
        return grad, (grad_y, normed)

    def backward_weight(self, kept: Pair) -> None:
        """Add to the gain's gradient."""
        self.grad_gain += (kept[0] * kept[1]).sum_to_size(self.gain.shape)


class QKNorm(RMSNorm):
    """The queries and the keys of every head, each normed by itself; values pass.

    All heads share one gain for queries and one for keys. A rank that has only some of the heads
    norms them alone, but its grad_gain is only those heads' term of the sum.
    """

    holds = {"gain": PARTIAL}

    def __init__(self, gain: Tensor):
        """Keep a copy of the gains [2, 1, d]: the queries', then the keys'."""
        super().__init__(gain)

    def forward(self, x: Tensor) -> tuple[Tensor, Pair]:
        """x [B, S, 3·H·d], all queries, then keys, then values -> y, of the same shape."""
        qk, v = self._parts(x)
        y, saved = super().forward(qk)
        return torch.cat([y, v], dim=-3).flatten(-3), saved

    def backward_input(self, grad_y: Tensor, saved: Pair) -> tuple[Tensor, Pair]:
        """grad_y [B, S, 3·H·d] -> grad_x, of the same shape."""
        grad_qk, grad_v = self._parts(grad_y)
        grad_qk, kept = super().backward_input(grad_qk, saved)
        return torch.cat([grad_qk, grad_v], dim=-3).flatten(-3), kept

    def _parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys [B, S, 2, H, d], and values [B, S, 1, H, d]."""
        return x.unflatten(-1, (3, -1, self.gain.shape[-1])).split([2, 1], dim=-3)


class LayerNorm(RMSNorm):
    """y = g ∘ (x - mean) / √variance + b, over all features."""

    holds = {"gain": REPLICATED, "bias": REPLICATED}

    def __init__(self, gain: Tensor, bias: Tensor):
        """Keep copies of gain and bias, [D] each."""
        super().__init__(gain)
        self.bias, self.grad_bias = bias.clone(), torch.zeros_like(bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Pair]:
        """x [..., D] -> y, of the same shape; saves 1/√variance and x normed."""
        y, saved = super().forward(x - x.mean(dim=-1, keepdim=True))
        return y + self.bias, saved

    def backward_input(self, grad_y: Tensor, saved: Pair) -> tuple[Tensor, Pair]:
        """grad_y -> grad_x: as for RMSNorm, without its mean."""
        grad_x, kept = super().backward_input(grad_y, saved)
        return grad_x - grad_x.mean(dim=-1, keepdim=True), kept

    def backward_weight(self, kept: Pair) -> None:
        """Add to the gradients of gain and bias."""
        super().backward_weight(kept)
        self.grad_bias += kept[0].flatten(0, -2).sum(dim=0)


class Residual(MLP):
    """y = x + inner(x), where inner is layers one after the other."""

    def forward(self, x: Tensor) -> tuple[Tensor, list[Any]]:
        """x [B, S, D] -> y [B, S, D]; saves what the layers save."""
        y, saved = super().forward(x)
        return x + y, saved

    def backward(self, grad_y: Tensor, saved: list[Any]) -> Tensor:
        """grad_y -> grad_x: through the layers, and past them."""
        return grad_y + super().backward(grad_y, saved)

    def backward_input(self, grad_y: Tensor, saved: list[Any]) -> tuple[Tensor, list[Any]]:
        """grad_y -> grad_x; keeps what the layers keep."""
        grad_x, kept = super().backward_input(grad_y, saved)
        return grad_y + grad_x, kept
