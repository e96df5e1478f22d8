"""The operators g and ḡ for autograd: each is the other's backward pass.

    gather_tokens    (g)   forward: all-gather.       backward: reduce-scatter of the gradient.
    scatter_sum      (ḡ)   forward: reduce-scatter.   backward: all-gather of the gradient.

They stand where f and g of byhand.tensor_parallel.operators stand: before a column-parallel layer,
and after a row-parallel one. The letters are those of Korthikanti et al. 2022, arXiv:2205.05198,
section 4.2.2, whose g is another one than that of the first Megatron paper.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from byhand.sequence_parallel.tokens import Group, gather, reduce_scatter


class GatherTokens(torch.autograd.Function):
    """g: x sharded by token -> y replicated; grad_y partial -> grad_x sharded by token."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return gather(x, group)

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor) -> tuple[Tensor, None]:
        return reduce_scatter(grad_y, ctx.group), None


class ScatterSum(torch.autograd.Function):
    """ḡ: x partial -> y sharded by token; grad_y sharded by token -> grad_x replicated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return reduce_scatter(x, group)

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor) -> tuple[Tensor, None]:
        return gather(grad_y, ctx.group), None


def gather_tokens(x: Tensor, group: Group = None) -> Tensor:
    """x [..., S/n, D] -> [..., S, D]. Sends (n-1)/n of the whole's bytes per rank, each way."""
    return GatherTokens.apply(x, group)


def scatter_sum(x: Tensor, group: Group = None) -> Tensor:
    """x [..., S, D] -> the sum's [..., S/n, D]. Sends (n-1)/n of x's bytes per rank, each way."""
    return ScatterSum.apply(x, group)
