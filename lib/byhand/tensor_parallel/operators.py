"""Megatron's operators f and g for autograd: each is the other's backward pass.

    copy_to_group   (f)   forward: nothing.        backward: all-reduce of the gradient.
    sum_over_group  (g)   forward: all-reduce.     backward: nothing.

f stands before a column-parallel layer, g after a row-parallel one. Between them a model may be any
autograd code, for f and g are where the ranks touch:

    y = sum_over_group(activation(copy_to_group(x) @ first.T) @ second.T)

`torch.distributed.nn.functional.all_reduce` is no g: its backward is an all-reduce too, which
multiplies a replicated gradient by the number of ranks.
Source: Shoeybi et al. 2019, arXiv:1909.08053, section 3.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

Group = dist.ProcessGroup | None


class CopyToGroup(torch.autograd.Function):
    """f: x replicated -> x; grad_y partial -> grad_x replicated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor) -> tuple[Tensor, None]:
        return _summed(grad_y, ctx.group), None


class SumOverGroup(torch.autograd.Function):
    """g: x partial -> y replicated; grad_y replicated -> grad_y."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        return _summed(x, group)

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor) -> tuple[Tensor, None]:
        return grad_y, None


def copy_to_group(x: Tensor, group: Group = None) -> Tensor:
    """x, replicated. On the way back the ranks' terms of its gradient are summed.

    Sends nothing forward, and 2 (n-1)/n of x's bytes per rank backward.
    """
    return CopyToGroup.apply(x, group)


def sum_over_group(x: Tensor, group: Group = None) -> Tensor:
    """The sum of the ranks' x, replicated. Its gradient passes through as it is.

    Sends 2 (n-1)/n of x's bytes per rank forward, and nothing backward.
    """
    return SumOverGroup.apply(x, group)


def _summed(tensor: Tensor, group: Group) -> Tensor:
    total = tensor.clone(memory_format=torch.contiguous_format)  # never in the caller's tensor
    dist.all_reduce(total, group=group)
    return total
