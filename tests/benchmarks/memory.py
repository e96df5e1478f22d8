"""Recomputed blocks over torch.utils.checkpoint's: same weights, one rank, taking turns.

    python tests/benchmarks/memory.py [repetitions]

A chain of blocks, each two linear layers with a GELU between and a dropout after them; both replay
its random numbers. A step is forward and backward; a repetition's ratio is ours over torch's, and
beside it stand ours over the plain chain's, and the peaks, counted in launches of their own.
"""

from __future__ import annotations

import statistics
import sys

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from byhand import launch
from byhand.communication_cost.timing import take_turns
from byhand.memory import Recomputed
from byhand.model.layer import Layer
from byhand.model.mlp import MLP, random_weights

REPETITIONS, BLOCKS, DROPPED = 15, 8, 0.1
SHAPES = {
    "small: 64 × 64": (64, 64),
    "medium: 256 × 256": (256, 256),
    "large: 512 × 512": (512, 512),
}


class FusedGELU(Layer):
    """With torch's own kernels, so that what is compared is recomputation."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return F.gelu(x), x

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, None]:
        return torch.ops.aten.gelu_backward(grad_y, saved), None


class Dropout(Layer):
    """With torch's own generator and mask, as F.dropout has it."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.native_dropout(x, DROPPED, True)

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, None]:
        return torch.ops.aten.native_dropout_backward(grad_y, saved, 1 / (1 - DROPPED)), None


def weights(width: int):
    """Of one block after the other: two pairs."""
    return (random_weights([width, 4 * width, width], seed) for seed in range(BLOCKS))


def ours(rows: int, width: int, wrap):
    """A step, and what gives its gradients."""
    blocks = [MLP([*MLP.from_weights(w, FusedGELU).layers, Dropout()]) for w in weights(width)]
    model, x, grad_y = (
        MLP(list(map(wrap, blocks))),
        torch.ones(rows, width),
        torch.ones(rows, width),
    )

    def step() -> Tensor:
        model.zero_gradients()
        _, saved = model.forward(x)
        return model.backward(grad_y, saved)

    return step, model.gradients


def torchs(rows: int, width: int):
    """The same with autograd."""
    leaves = [[t.requires_grad_() for pair in w for t in pair] for w in weights(width)]
    x, grad_y = torch.ones(rows, width).requires_grad_(), torch.ones(rows, width)

    def block(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        return F.dropout(F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2), DROPPED)

    def step() -> Tensor:
        y = x
        for tensors in leaves:
            for tensor in tensors:
                if tensor.grad is not None:
                    tensor.grad.zero_()
            y = checkpoint(block, y, *tensors, use_reentrant=False)
        x.grad = None
        y.backward(grad_y)
        return x.grad

    return step, lambda: [tensor.grad for tensors in leaves for tensor in tensors]


def contender(name: str, rows: int, width: int):
    """By name."""
    if name == "torch":
        return torchs(rows, width)
    return ours(rows, width, Recomputed if name == "ours" else lambda layer: layer)


NAMES = "ours", "torch", "plain"


def race(rank: int, world_size: int, shape: tuple[int, int], repetitions: int):
    """The times of all, after checking that they compute the same."""
    contenders = {name: contender(name, *shape) for name in NAMES}
    found = []
    for step, gradients in contenders.values():
        torch.manual_seed(0)
        found.append([step(), *gradients()])
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
    return take_turns({name: step for name, (step, _) in contenders.items()}, repetitions)


def alone(rank: int, world_size: int, name: str, shape: tuple[int, int]) -> None:
    """Two steps: the second has gradients to begin with."""
    step, _ = contender(name, *shape)
    step()
    step()


def main(repetitions: int) -> None:
    """A row for each size."""
    print("| T × D | ours, torch's | ours over torch's | over plain | peak: ours, torch's, plain |")
    print("|---|---|---|---|---|")
    for name, shape in SHAPES.items():
        times = launch(race, 1, (shape, repetitions), deadline=300).results[0]
        runs = {each: launch(alone, 1, (each, shape), memory=True) for each in NAMES}
        peaks = {each: run.peak_bytes[0] / 2**20 for each, run in runs.items()}
        cells = [", ".join(f"{1e3 * times[each].median:.1f} ms" for each in NAMES[:2])]
        for other in NAMES[1:]:
            pairs = zip(times["ours"].seconds, times[other].seconds, strict=True)
            low, middle, high = statistics.quantiles((a / b for a, b in pairs), n=4)
            cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
        cells.append(", ".join(f"{peaks[each]:.1f} MiB" for each in NAMES))
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS)
