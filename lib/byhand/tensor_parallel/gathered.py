"""The all-gather variant of tensor parallelism: every layer's output is made whole at once.

Each rank computes its own columns of y and all-gathers them, so that any layer can come next.
Simple, and dear: it sends something for every layer, and the widest activation too, where column
and row together send only the narrow ones.

    Gather, Slice     whole from slices, and back: each is the other's backward pass
    GatheredLinear    a column-parallel layer, then Gather
    GatheringLinear   a column-parallel layer that gathers its input: where slices arrive, an
                      all-gather's backward pass is a reduce-scatter, and half of an all-reduce

Shapes: T rows, F features, n ranks in `group`.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.model.layer import Layer
from byhand.model.mlp import MLP
from byhand.model.shards import Group, shard
from byhand.tensor_parallel.layers import ColumnParallelLinear


class Gather(Layer):
    """y is x of all ranks, side by side. Its backward sends nothing: grad_y is whole on each."""

    def __init__(self, group: Group = None):
        self.group = group

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        """x [T, F/n] sharded -> y [T, F] replicated: one all-gather, (n-1)/n · T·F elements."""
        return gather(x, self.group), None

    def backward_input(self, grad_y: Tensor, saved: None) -> tuple[Tensor, None]:
        """grad_y [T, F] replicated -> grad_x [T, F/n] sharded."""
        return shard(grad_y, 1, self.group), None


class Slice(Layer):
    """y is this rank's slice of x. Sends nothing forward, and backward what Gather does forward."""

    def __init__(self, group: Group = None):
        self.group = group

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        """x [T, F] replicated -> y [T, F/n] sharded."""
        return shard(x, 1, self.group).contiguous(), None

    def backward_input(self, grad_y: Tensor, saved: None) -> tuple[Tensor, None]:
        """grad_y [T, F/n] sharded -> grad_x [T, F] replicated."""
        return gather(grad_y, self.group), None


class GatheredLinear(MLP):
    """y = x Wᵀ + b, where rank r keeps rows r·O/n to (r+1)·O/n of W and b; x, y replicated."""

    def __init__(self, weight: Tensor, bias: Tensor, group: Group = None):
        """Keep this rank's share of the full weight [O, I] and bias [O]."""
        super().__init__([ColumnParallelLinear(weight, bias, group), Gather(group)])


class GatheringLinear(ColumnParallelLinear):
    """y_r = x W_rᵀ + b_r, where x arrives sharded too: both x and its gradient travel."""

    def check_input(self, x: Tensor) -> None:
        """None: x has I/n features."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [T, I/n] sharded -> y [T, O/n] sharded: one all-gather, (n-1)/n · T·I elements."""
        return super().forward(gather(x, self.group))

    def backward(self, grad_y: Tensor, saved: Tensor) -> Tensor:
        """grad_y [T, O/n] sharded -> grad_x [T, I/n] sharded. Adds to the gradients.

        Sends (n-1)/n · T·I elements per rank: one reduce-scatter, for a rank needs its slice only.
        """
        self.backward_weight((grad_y, saved))
        slices = (grad_y @ self.weight).chunk(dist.get_world_size(self.group), dim=1)
        terms = [term.contiguous() for term in slices]
        grad_x = torch.empty_like(terms[0])
        dist.reduce_scatter(grad_x, terms, group=self.group)
        return grad_x


def gather(x: Tensor, group: Group = None) -> Tensor:
    """x [T, F/n] sharded -> [T, F] replicated, in rank order."""
    slices = [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
    dist.all_gather(slices, x, group=group)
    return torch.cat(slices, dim=1)
