"""Lecture 07's MLP written by JAX's compiler, in a process of its own, and by hand on ranks.

Where jax is not installed, the page shows what stored.py kept of it, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from byhand.frameworks.by_jax import OneStep, Pairs, one_step
from byhand.model.mlp import mean_squared_error, random_weights
from byhand.runtime import call, launch
from byhand.tensor_parallel import TensorParallelMLP

OURS = "ours"
Calls = Sequence[tuple[str, int]]


def case() -> tuple[Pairs, Tensor, Tensor]:
    """Full weights of 8, 32 and 8 features; x and its target, of 16 rows."""
    x, target = torch.randn(2, 16, 8, generator=torch.Generator().manual_seed(1))
    return random_weights([8, 32, 8]), x, target


def all_ways(num_devices: int = 4) -> tuple[dict[str, OneStep], str]:
    """Ours and JAX's programs on the same case; and what JAX says where a sum is left out."""
    on = case()
    compiled, refusal = call(one_step, *on, num_devices)
    return {OURS: by_hand(*on, num_devices), **compiled}, refusal


def by_hand(weights: Pairs, x: Tensor, target: Tensor, world_size: int = 4) -> OneStep:
    """TensorParallelMLP's loss, whole gradients, and calls with the bytes they carry."""
    run = launch(_on_rank, world_size, (weights, x, target))
    loss, (grad_x, *_, grad_down_bias) = run.results[0]
    up, up_bias, down = list(zip(*(found[1] for found in run.results), strict=True))[1:4]
    split = torch.cat(up), torch.cat(up_bias), torch.cat(down, dim=1)
    calls = [(event.op, event.payload_bytes) for event in run.ledger.select(rank=0)]
    meets = calls.index(("barrier", 0))
    forward, backward = calls[:meets], calls[meets + 1 :]
    return OneStep(loss, [grad_x, *split, grad_down_bias], forward, forward + backward)


def _on_rank(
    rank: int, world_size: int, weights: Pairs, x: Tensor, target: Tensor
) -> tuple[float, list[Tensor]]:
    model = TensorParallelMLP(weights)
    y, saved = model.forward(x)
    torch.distributed.barrier()  # in the ledger: here forward ends
    loss, grad_y = mean_squared_error(y, target)
    grad_x = model.backward(grad_y, saved)
    column, _, row = model.layers
    return float(loss), [grad_x, *column.gradients(), *row.gradients()]


def furthest(ways: Mapping[str, OneStep]) -> float:
    """The largest distance of a loss or of a gradient from ours."""
    ours = ways[OURS]
    losses = [abs(way.loss - ours.loss) for way in ways.values()]
    pairs = (zip(way.gradients, ours.gradients, strict=True) for way in ways.values())
    return max(*losses, *(float((a - b).abs().max()) for pair in pairs for a, b in pair))


def table(calls: Mapping[str, tuple[Calls, Calls]]) -> str:
    """A line a way: its calls forward, and those that backward adds."""
    lines = [f"{'':20}{'forward':30}forward and backward"]
    lines += [f"{name:20}{_told(one):30}{_told(both)}" for name, (one, both) in calls.items()]
    return "\n".join(lines)


def _told(calls: Calls) -> str:
    found = Counter(map(tuple, calls))
    return ", ".join(f"{n} {op} of {size:,} bytes" for (op, size), n in found.items())


def kept(ways: Mapping[str, OneStep]) -> dict[str, Any]:
    """What is stored of them."""
    return {name: [way.forward, way.step] for name, way in ways.items()}
