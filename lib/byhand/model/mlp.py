"""A multi-layer perceptron whose backward pass is written out, and its losses.

Its layers are byhand.model.Layer's: that docstring says what forward and backward give and take.
Losses are means over the *global* batch: then gradients of the shards of a batch simply add up.

Shapes: T rows of a batch, I input features, O output features, C classes. Where x is [T, I] it may
also be [B, S, I], tokens of sequences: then every token is a row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from byhand.model.layer import REPLICATED, Layer


class Linear(Layer):
    """y = x Wᵀ + b, with W [O, I] and b [O].

    >>> layer = Linear(torch.tensor([[1.0, 2.0]]), torch.tensor([3.0]))
    >>> y, saved = layer.forward(torch.tensor([[10.0, 20.0]]))
    >>> y, layer.backward(torch.ones(1, 1), saved), layer.grad_weight
    (tensor([[53.]]), tensor([[1., 2.]]), tensor([[10., 20.]]))
    """

    holds = {"weight": REPLICATED, "bias": REPLICATED}

    def __init__(self, weight: Tensor, bias: Tensor):
        """Keep copies of the weight [O, I] and the bias [O].

        Raises:
            ValueError: their shapes or dtypes do not fit together.
        """
        check_pair(weight, bias)
        self.weight, self.bias = weight.clone(), bias.clone()
        self.grad_weight, self.grad_bias = torch.zeros_like(weight), torch.zeros_like(bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [T, I] -> y [T, O]; saves x."""
        self.check_input(x)
        return F.linear(x, self.weight, self.bias), x

    def backward_first(self, grad_y: Tensor, saved: Tensor) -> None:
        """As backward, for a layer whose x is the data: nobody needs grad_x, so it is not made."""
        self.backward_weight((grad_y, saved))

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """grad_y [T, O] -> grad_x [T, I]; keeps grad_y and x."""
        return grad_y @ self.weight, (grad_y, saved)

    def backward_weight(self, kept: tuple[Tensor, Tensor]) -> None:
        """Add grad_yᵀ x to grad_weight and the sum of grad_y's rows to grad_bias."""
        grad_y, x = (tensor.flatten(0, -2) for tensor in kept)
        self.grad_weight.addmm_(grad_y.T, x)
        self.grad_bias += grad_y.sum(dim=0)

    def check_input(self, x: Tensor) -> None:
        """Refuse an x of other features or another dtype than this layer takes."""
        num_features = self.weight.shape[1]
        if x.shape[-1] != num_features or x.dtype != self.weight.dtype:
            raise ValueError(
                f"x has {x.shape[-1]} features of {x.dtype}, but this layer takes {num_features} "
                f"of {self.weight.dtype}"
            )


class ReLU(Layer):
    """y = max(x, 0), element by element. No parameters."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x -> y, of the same shape; saves y, whose sign tells x's."""
        y = x.clamp(min=0)
        return y, y

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, None]:
        """grad_y -> grad_x: grad_y where x was positive, else 0."""
        return grad_y * (saved > 0), None


class GELU(Layer):
    """y = x Φ(x), with Φ the normal distribution function. Source: arXiv:1606.08415."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x -> y, of the same shape; saves x."""
        return _normal_cdf(x).mul_(x), x

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, None]:
        """grad_y -> grad_x = grad_y (Φ(x) + x φ(x))."""
        bell, scale = (saved * saved).mul_(-0.5).exp_(), 1 / math.sqrt(2 * math.pi)  # φ(x)
        return _normal_cdf(saved).addcmul_(saved, bell, value=scale).mul_(grad_y), None


def _normal_cdf(x: Tensor) -> Tensor:
    return (x * math.sqrt(0.5)).erf_().add_(1).mul_(0.5)


class MLP(Layer):
    """Layers one after the other; itself a layer.

    >>> pairs = [(torch.ones(3, 2), torch.zeros(3)), (torch.ones(1, 3), torch.zeros(1))]
    >>> model = MLP.from_weights(pairs)
    >>> y, saved = model.forward(torch.tensor([[1.0, 2.0]]))
    >>> y, model.backward(torch.ones(1, 1), saved)
    (tensor([[9.]]), tensor([[3., 3.]]))
    """

    layers: list[Layer]

    def __init__(self, layers: Sequence[Layer]):
        self.layers = list(layers)

    @classmethod
    def from_weights(cls, weights: Sequence[tuple[Tensor, Tensor]], activation: Any = ReLU) -> MLP:
        """Linear layers of these (weight, bias) pairs, with an activation between each two."""
        layers: list[Layer] = []
        for weight, bias in weights:
            layers += [activation(), Linear(weight, bias)] if layers else [Linear(weight, bias)]
        return cls(layers)

    def forward(self, x: Tensor) -> tuple[Tensor, list[Any]]:
        """x [T, I] of the first layer -> y [T, O] of the last; saves a list, one item a layer."""
        saved = []
        for layer in self.layers:
            x, item = layer.forward(x)
            saved.append(item)
        return x, saved

    def backward(self, grad_y: Tensor, saved: list[Any]) -> Tensor:
        """grad_y [T, O] -> grad_x [T, I], layer by layer from the last to the first."""
        for layer, item in zip(reversed(self.layers), reversed(saved), strict=True):
            grad_y = layer.backward(grad_y, item)
        return grad_y

    def backward_first(self, grad_y: Tensor, saved: list[Any]) -> None:
        """As backward, but the first layer makes no grad_x."""
        for layer, item in zip(reversed(self.layers[1:]), reversed(saved[1:]), strict=True):
            grad_y = layer.backward(grad_y, item)
        self.layers[0].backward_first(grad_y, saved[0])

    def backward_input(self, grad_y: Tensor, saved: list[Any]) -> tuple[Tensor, list[Any]]:
        """grad_y [T, O] -> grad_x [T, I]; keeps a list, one item a layer."""
        kept = []
        for layer, item in zip(reversed(self.layers), reversed(saved), strict=True):
            grad_y, item_kept = layer.backward_input(grad_y, item)
            kept.append(item_kept)
        return grad_y, kept[::-1]

    def backward_weight(self, kept: list[Any]) -> None:
        """Add to every layer's gradients."""
        for layer, item in zip(self.layers, kept, strict=True):
            layer.backward_weight(item)


def check_pair(weight: Tensor, bias: Tensor) -> None:
    """Refuse a weight and a bias that make no linear layer."""
    if weight.dim() != 2 or bias.shape != weight.shape[:1] or bias.dtype != weight.dtype:
        raise ValueError(
            f"weight {list(weight.shape)} {weight.dtype} and bias {list(bias.shape)} "
            f"{bias.dtype} do not fit: they are [O, I] and [O], of one dtype"
        )


def random_weights(
    sizes: Sequence[int], seed: int = 0, dtype: torch.dtype = torch.float32
) -> list[tuple[Tensor, Tensor]]:
    """(weight [O, I], bias [O]) of a linear layer between each two of `sizes`, equal for one seed.

    Uniform in ±1/√I, as torch.nn.Linear begins.
    """
    generator = torch.Generator().manual_seed(seed)

    def uniform(bound: float, *shape: int) -> Tensor:
        return (2 * torch.rand(*shape, generator=generator, dtype=torch.float64) - 1) * bound

    pairs = [(1 / math.sqrt(i), i, o) for i, o in itertools.pairwise(sizes)]
    return [(uniform(b, o, i).to(dtype), uniform(b, o).to(dtype)) for b, i, o in pairs]


def softmax_cross_entropy(
    logits: Tensor, labels: Tensor, global_batch: int | None = None
) -> tuple[Tensor, Tensor]:
    """logits [T, C] and labels [T] -> this shard's share of the mean loss, and grad_logits.

    Both are divided by `global_batch`, the rows of all ranks together (T when None), so that
    losses and gradients of the shards of one batch add up to those of the whole.

    >>> logits, labels = torch.zeros(1, 4), torch.tensor([2])
    >>> softmax_cross_entropy(logits, labels)
    (tensor(1.3863), tensor([[ 0.2500,  0.2500, -0.7500,  0.2500]]))
    """
    num_rows = _global_batch(len(logits), global_batch)
    log_probabilities = logits - logits.logsumexp(dim=1, keepdim=True)
    rows = torch.arange(len(labels), device=labels.device)
    loss = -log_probabilities[rows, labels].sum() / num_rows
    grad_logits = log_probabilities.exp()
    grad_logits[rows, labels] -= 1
    return loss, grad_logits.div_(num_rows)


def mean_squared_error(
    y: Tensor, target: Tensor, global_batch: int | None = None
) -> tuple[Tensor, Tensor]:
    """y and target [T, O] -> this shard's share of the mean of (y - target)², and grad_y.

    The mean is over O and the `global_batch` rows of all ranks together (T when None).

    >>> mean_squared_error(torch.tensor([[1.0, 4.0]]), torch.tensor([[1.0, 2.0]]))
    (tensor(2.), tensor([[0., 2.]]))
    """
    if y.shape != target.shape:
        raise ValueError(f"y is {list(y.shape)}, its target {list(target.shape)}: they must agree")
    count = _global_batch(len(y), global_batch) * y[0].numel() if len(y) else 1
    difference = y - target
    return difference.square().sum() / count, difference * (2 / count)


def _global_batch(num_rows: int, global_batch: int | None) -> int:
    if global_batch is None:
        return max(num_rows, 1)
    if global_batch < num_rows:
        raise ValueError(f"a shard of {num_rows} rows is no part of a batch of {global_batch} rows")
    return global_batch
