"""A convolution, split over ranks by channel: the linear layer's two splits once more.

A convolution is a linear layer on patches: `unfold` lays the k·k·C numbers under the kernel out as
a column, one column per place, and the weight multiplies them. On the way back `fold` adds each
patch's gradient into the pixels that it came from.

    Conv2d                       on one device
    OutputChannelParallelConv2d  rank r makes its slice of the output channels (split by column)
    InputChannelParallelConv2d   rank r reads its slice of the input channels (split by row)

One of each in a row sends one all-reduce forward, one backward, as in TensorParallelMLP.
Simplified: square kernels, equal padding on all sides, no dilation, no channel groups of its own.

Shapes: T images, C input and O output channels, h × w pixels, k × k kernel, n ranks in `group`.
Source: Krizhevsky, Sutskever and Hinton 2012 (AlexNet), whose channels lay on two GPUs.
"""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F

from byhand.model.layer import REPLICATED, SHARDED
from byhand.model.mlp import Linear
from byhand.model.shards import Group, equal_shards, shard
from byhand.tensor_parallel.layers import ColumnParallelLinear


class Conv2d(Linear):
    """y = x ∗ W + b, with W [O, C, k, k] and b [O]."""

    def __init__(self, weight: Tensor, bias: Tensor, padding: int = 0, stride: int = 1):
        """Keep copies of the weight [O, C, k, k] and the bias [O].

        Raises:
            ValueError: their shapes or dtypes do not fit together.
        """
        check_kernel(weight, bias)
        self.weight, self.bias = weight.clone(), bias.clone()
        self.grad_weight, self.grad_bias = weight.new_zeros(weight.shape), bias.new_zeros(len(bias))
        self.geometry = {"kernel_size": weight.shape[-1], "padding": padding, "stride": stride}

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [T, C, h, w] -> y [T, O, h', w']; saves x."""
        return self.products(x) + self.bias[:, None, None], x

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """grad_y [T, O, h', w'] -> grad_x [T, C, h, w]; keeps grad_y and x."""
        grad_patches = self.weight.flatten(1).T @ grad_y.flatten(2)  # [T, C·k·k, h'·w']
        grad_x = F.fold(grad_patches, saved.shape[2:], **self.geometry)
        return grad_x, (grad_y, saved)

    def backward_weight(self, kept: tuple[Tensor, Tensor]) -> None:
        """Add to grad_weight and grad_bias. The patches are laid out again: k·k times x's size."""
        grad_y, x = kept[0].flatten(2), kept[1]
        products = (grad_y @ self._patches(x).mT).sum(dim=0)  # [O, C·k·k]
        self.grad_weight += products.view_as(self.grad_weight)
        self.grad_bias += grad_y.sum(dim=(0, 2))

    def _patches(self, x: Tensor) -> Tensor:
        return F.unfold(x, **self.geometry)  # [T, C·k·k, h'·w']

    def products(self, x: Tensor) -> Tensor:
        """x ∗ W without the bias."""
        self.check_input(x)
        kernel, padding, stride = self.geometry.values()
        height, width = ((n + 2 * padding - kernel) // stride + 1 for n in x.shape[2:])
        return (self.weight.flatten(1) @ self._patches(x)).unflatten(2, (height, width))

    def check_input(self, x: Tensor) -> None:
        """Refuse an x of other channels or another dtype than this layer takes."""
        channels = self.weight.shape[1]
        if x.dim() != 4 or x.shape[1] != channels or x.dtype != self.weight.dtype:
            raise ValueError(
                f"x is {list(x.shape)} of {x.dtype}, but this layer takes [T, {channels}, h, w] "
                f"of {self.weight.dtype}"
            )


class OutputChannelParallelConv2d(ColumnParallelLinear, Conv2d):
    """y_r = x ∗ W_r + b_r, where rank r keeps kernels r·O/n to (r+1)·O/n.

    x is replicated, y [T, O/n, h', w'] sharded; forward sends nothing. Backward is that of the
    linear layer: one all-reduce of grad_x, 2 (n-1)/n · T·C·h·w elements per rank. After fold, for
    the patches have k·k times as many.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor, padding: int = 0, stride: int = 1, group: Group = None
    ):
        """Keep this rank's share of the full weight [O, C, k, k] and bias [O].

        Raises:
            ValueError: O is not a multiple of the group's size.
        """
        check_kernel(weight, bias)
        equal_shards(len(weight), "output channel", group)
        Conv2d.__init__(self, shard(weight, 0, group), shard(bias, 0, group), padding, stride)
        self.group = group


class InputChannelParallelConv2d(Conv2d):
    """y = Σ_r x_r ∗ W_r + b, where rank r keeps input channels r·C/n to (r+1)·C/n, and all of b.

    Backward, grad_y replicated -> grad_x sharded, is that of Conv2d, and sends nothing.
    """

    holds = {"weight": SHARDED, "bias": REPLICATED}

    def __init__(
        self, weight: Tensor, bias: Tensor, padding: int = 0, stride: int = 1, group: Group = None
    ):
        """Keep this rank's share of the full weight [O, C, k, k], and the bias [O].

        Raises:
            ValueError: C is not a multiple of the group's size.
        """
        check_kernel(weight, bias)
        equal_shards(weight.shape[1], "input channel", group)
        super().__init__(shard(weight, 1, group), bias, padding, stride)
        self.group = group

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [T, C/n, h, w] sharded -> y [T, O, h', w'] replicated; saves x.

        Sends 2 (n-1)/n · T·O·h'·w' elements per rank: one all-reduce.
        """
        y = self.products(x)  # partial
        dist.all_reduce(y, group=self.group)
        y += self.bias[:, None, None]  # once, after the sum
        return y, x


def check_kernel(weight: Tensor, bias: Tensor) -> None:
    """Refuse a weight and a bias that make no convolution."""
    square = weight.dim() == 4 and weight.shape[2] == weight.shape[3]
    if not square or bias.shape != weight.shape[:1] or bias.dtype != weight.dtype:
        raise ValueError(
            f"weight {list(weight.shape)} {weight.dtype} and bias {list(bias.shape)} "
            f"{bias.dtype} do not fit: they are [O, C, k, k] and [O], of one dtype"
        )
