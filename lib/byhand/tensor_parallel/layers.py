"""Tensor parallelism: one layer's weight, split over ranks (Megatron-LM's two splits).

    ColumnParallelLinear     rank r keeps rows of W: forward sends nothing, backward one all-reduce
    RowParallelLinear        rank r keeps columns of W: forward one all-reduce, backward nothing
    TensorParallelMLP        column, activation, row: one all-reduce forward, one backward
    TensorParallelAttention  query, key and value by column, output by row: each rank has its heads

A column-parallel layer ends where a row-parallel one begins, so nothing is sent between the two.
Every layer is a model.Layer, is built from full weights, and keeps only its shard.

Placements: *replicated*, equal on all ranks; *sharded*, each rank its slice of the features;
*partial*, each rank one term of a sum. n ranks in `group` (None: all of them).
Shapes: T rows of a batch, I input features, O output features, D = heads · head size.
Source: Shoeybi et al. 2019, Megatron-LM, arXiv:1909.08053, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.distributed as dist
from torch import Tensor

from byhand.model.attention import MultiHeadAttention, check_heads
from byhand.model.layer import REPLICATED, SHARDED, Layer
from byhand.model.mlp import MLP, Linear, ReLU, check_pair
from byhand.model.shards import Group, equal_shards, shard


class ColumnParallelLinear(Linear):
    """y_r = x W_rᵀ + b_r, where rank r keeps rows r·O/n to (r+1)·O/n of W and of b.

    Wᵀ is what x is multiplied by, and these are its columns: hence the name.
    Forward, x [T, I] replicated -> y [T, O/n] sharded, is that of Linear, and sends nothing.

    >>> def columns(rank, world_size):
    ...     layer = ColumnParallelLinear(torch.eye(4), torch.zeros(4))
    ...     y, saved = layer.forward(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    ...     return y, tuple(layer.weight.shape)
    >>> launch(columns, 2).results
    [(tensor([[1., 2.]]), (2, 4)), (tensor([[3., 4.]]), (2, 4))]
    """

    holds = {"weight": SHARDED, "bias": SHARDED}

    def __init__(self, weight: Tensor, bias: Tensor, group: Group = None):
        """Keep this rank's share of the full weight [O, I] and bias [O].

        Raises:
            ValueError: O is not a multiple of the group's size.
        """
        check_pair(weight, bias)
        equal_shards(len(weight), "output feature", group)
        super().__init__(shard(weight, 0, group), shard(bias, 0, group))
        self.group = group

    def backward(self, grad_y: Tensor, saved: Tensor) -> Tensor:
        """grad_y [T, O/n] sharded -> grad_x [T, I] replicated. Adds to the gradients.

        Sends 2 (n-1)/n · T·I elements per rank: one all-reduce, under way while the weight's
        gradient is computed.
        """
        grad_x, kept = super().backward_input(grad_y, saved)  # a term of the sum
        pending = dist.all_reduce(grad_x, group=self.group, async_op=True)
        self.backward_weight(kept)
        pending.wait()
        return grad_x

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """grad_y [T, O/n] sharded -> grad_x [T, I] replicated; keeps grad_y and x.

        Sends what backward sends. `backward_weight` and `backward_first` send nothing.
        """
        grad_x, kept = super().backward_input(grad_y, saved)
        dist.all_reduce(grad_x, group=self.group)
        return grad_x, kept


class RowParallelLinear(Linear):
    """y = Σ_r x_r W_rᵀ + b, where rank r keeps columns r·I/n to (r+1)·I/n of W, and all of b.

    Backward, grad_y [T, O] replicated -> grad_x [T, I/n] sharded, is that of Linear, and sends
    nothing; grad_bias comes out equal on all ranks.

    >>> def rows(rank, world_size):
    ...     layer = RowParallelLinear(torch.ones(1, 4), torch.zeros(1))
    ...     x = torch.tensor([[1.0, 2.0, 3.0, 4.0]]).tensor_split(world_size, dim=1)[rank]
    ...     return layer.forward(x)[0].item()
    >>> run = launch(rows, 2)
    >>> run.results, run.ledger.count("all_reduce", rank=0)
    ([10.0, 10.0], 1)
    """

    holds = {"weight": SHARDED, "bias": REPLICATED}

    def __init__(self, weight: Tensor, bias: Tensor, group: Group = None):
        """Keep this rank's share of the full weight [O, I], and the bias [O].

        Raises:
            ValueError: I is not a multiple of the group's size.
        """
        check_pair(weight, bias)
        equal_shards(weight.shape[1], "input feature", group)
        super().__init__(shard(weight, 1, group), bias)
        self.group = group

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [T, I/n] sharded -> y [T, O] replicated; saves x.

        Sends 2 (n-1)/n · T·O elements per rank: one all-reduce.
        """
        self.check_input(x)
        y = x @ self.weight.T  # [T, O], partial
        dist.all_reduce(y, group=self.group)
        y += self.bias  # once: before the sum it would be added n times
        return y, x


class TensorParallelMLP(MLP):
    """Linear layers in pairs, the first of each split by column and the second by row.

    x and y are replicated. Each pair sends one all-reduce of y forward, and one of grad_x backward;
    with `backward_first` the first pair sends none backward.

    >>> def step(rank, world_size, pairs):
    ...     mlp = TensorParallelMLP(pairs)
    ...     y, saved = mlp.forward(torch.ones(8, 16))
    ...     mlp.backward(y, saved)
    >>> pairs = [(torch.ones(64, 16), torch.zeros(64)), (torch.ones(16, 64), torch.zeros(16))]
    >>> launch(step, 2, (pairs,)).ledger.count("all_reduce", rank=0)
    2
    """

    column, row = ColumnParallelLinear, RowParallelLinear

    def __init__(
        self, weights: Sequence[tuple[Tensor, Tensor]], activation: Any = ReLU, group: Group = None
    ):
        """Keep this rank's shard of full (weight, bias) pairs; an activation between each two.

        Raises:
            ValueError: an odd number of layers, or features between a pair that do not divide.
        """
        if len(weights) == 0 or len(weights) % 2:
            raise ValueError(
                f"{len(weights)} linear layers do not make pairs: after each layer split by column "
                "comes one split by row, so their number must be a multiple of 2"
            )
        layers: list[Layer] = []
        for index, (weight, bias) in enumerate(weights):
            split = self.row if index % 2 else self.column
            layers += [*([activation()] if layers else []), split(weight, bias, group)]
        super().__init__(layers)


class TensorParallelAttention(MultiHeadAttention):
    """Multi-head attention with H/n of the H heads on each rank.

    No head needs another, so only the two linear layers talk: one all-reduce of y [B, S, D] forward
    (the output layer's) and one of grad_x backward (the query-key-value layer's).

    >>> def parameters(rank, world_size):
    ...     qkv, out = (torch.ones(48, 16), torch.zeros(48)), (torch.ones(16, 16), torch.zeros(16))
    ...     layer = TensorParallelAttention(qkv, out, num_heads=4)
    ...     return sum(tensor.numel() for tensor in layer.parameters())
    >>> launch(parameters, 1).results, launch(parameters, 4).results
    ([1088], [284, 284, 284, 284])
    """

    column, row = ColumnParallelLinear, RowParallelLinear

    def __init__(
        self,
        qkv: tuple[Tensor, Tensor],
        out: tuple[Tensor, Tensor],
        num_heads: int,
        causal: bool = False,
        group: Group = None,
    ):
        """Keep this rank's heads of full weights: qkv [3D, D], [3D]; out [D, D], [D].

        Raises:
            ValueError: D is not a multiple of the heads, or the heads of the group's size.
        """
        check_heads(len(qkv[0]), num_heads)
        own = equal_shards(num_heads, "head", group)
        weight, bias = (_ranks_together(tensor, num_heads // own) for tensor in qkv)
        super().__init__(self.column(weight, bias, group), self.row(*out, group), own, causal)


def _ranks_together(qkv: Tensor, world_size: int) -> Tensor:
    """Rows q, k, v of all heads -> q, k, v of rank 0's heads, then of rank 1's, and so on."""
    parts = qkv.unflatten(0, (3, world_size, -1))  # [3, n, D/n, ...]
    return parts.transpose(0, 1).flatten(0, 2)
