"""The all-gather variant of tensor parallelism: every layer's output is made whole at once.

Each rank computes its own columns of y and all-gathers them, so that any layer can come next.
Simple, found in many first implementations, and dear: it sends something for every layer, and the
widest activation too, where column and row together send only the narrow ones.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.tensor_parallel.layers import ColumnParallelLinear


class GatheredLinear(ColumnParallelLinear):
    """y = x Wᵀ + b, where rank r keeps rows r·O/P to (r+1)·O/P of W and b, and y is replicated.

    Built as its parent is.
    """

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [T, I] replicated -> y [T, O] replicated; saves x.

        Sends (P-1)/P · T·O elements per rank: one all-gather.
        """
        slice_of_y, saved = super().forward(x)  # [T, O/P]
        slices = [torch.empty_like(slice_of_y) for _ in range(dist.get_world_size(self.group))]
        dist.all_gather(slices, slice_of_y, group=self.group)
        return torch.cat(slices, dim=1), saved

    def backward(self, grad_y: Tensor, saved: Tensor) -> Tensor:
        """grad_y [T, O] replicated -> grad_x [T, I] replicated. Adds to the gradients.

        Sends 2 (P-1)/P · T·I elements per rank: one all-reduce. The all-gather itself sends nothing
        on its way back: every rank already has grad_y whole, and takes its own columns.
        """
        return super().backward(self._own_columns(grad_y), saved)

    def backward_first(self, grad_y: Tensor, saved: Tensor) -> None:
        """As backward, where nobody needs grad_x: sends nothing."""
        super().backward_first(self._own_columns(grad_y), saved)

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """grad_y [T, O] replicated -> grad_x [T, I] replicated; keeps grad_y's columns and x."""
        return super().backward_input(self._own_columns(grad_y), saved)

    def _own_columns(self, grad_y: Tensor) -> Tensor:
        world_size = dist.get_world_size(self.group)
        return grad_y.tensor_split(world_size, dim=1)[dist.get_rank(self.group)]
