"""A tensor-parallel MLP's step, by hand over DTensor's: same weights, same ranks, taking turns.

    python tests/benchmarks/tensor_parallel.py [repetitions]

One step is forward and backward (gradients of weights and of x) on 2 ranks of one thread each. In
one launch the two take turns, with a barrier before each; a repetition's ratio is the time of the
slower rank by hand over the slower rank's with DTensor. Below 1.00 is faster than DTensor.
"""

from __future__ import annotations

import argparse
import statistics

import torch
import torch.distributed as dist

from byhand import launch
from byhand.communication_cost.timing import take_turns
from byhand.model.mlp import GELU, random_weights
from byhand.tensor_parallel import TensorParallelMLP

WORLD_SIZE, REPETITIONS = 2, 15
SHAPES = {"small": (32, 64, 256), "medium": (256, 256, 1024), "large": (512, 1024, 4096)}


def by_hand(weights, x, grad_y):
    """One step of byhand's TensorParallelMLP."""
    model = TensorParallelMLP(weights, GELU)

    def step():
        model.zero_gradients()
        y, saved = model.forward(x)
        return y, model.backward(grad_y, saved)

    return step, model.gradients


def with_dtensor(weights, x, grad_y):
    """One step of parallelize_module with ColwiseParallel and RowwiseParallel."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    linears = [torch.nn.Linear(w.shape[1], w.shape[0]) for w, _ in weights]
    for linear, (weight, bias) in zip(linears, weights, strict=True):
        linear.weight.data, linear.bias.data = weight.clone(), bias.clone()
    model = torch.nn.Sequential(linears[0], torch.nn.GELU(), linears[1])
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x = x.clone().requires_grad_()

    def step():
        model.zero_grad(set_to_none=False)
        x.grad = None
        y = model(x)
        y.backward(grad_y)
        return y.detach(), x.grad

    return step, lambda: [p.grad.to_local() for p in model.parameters()]


def race(rank, world_size, weights, x, grad_y, repetitions):
    """The times of both, after checking that they compute the same."""
    contenders = [by_hand(weights, x, grad_y), with_dtensor(weights, x, grad_y)]
    results = [[*step(), *gradients()] for step, gradients in contenders]
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    return take_turns({i: step for i, (step, _) in enumerate(contenders)}, repetitions)


def ratios(shape, repetitions):
    """Of each repetition: the slower rank's time by hand over the slower rank's with DTensor."""
    rows, features, hidden = shape
    weights = random_weights([features, hidden, features])
    x, grad_y = torch.randn(rows, features), torch.randn(rows, features)
    run = launch(race, WORLD_SIZE, (weights, x, grad_y, repetitions), deadline=300)
    ours, theirs = run.results[0].values()
    return [a / b for a, b in zip(ours.seconds, theirs.seconds, strict=True)], theirs.median


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repetitions", nargs="?", type=int, default=REPETITIONS)
    repetitions = parser.parse_args().repetitions
    print(f"tensor-parallel step by hand over DTensor's, {WORLD_SIZE} ranks, median of ", end="")
    print(repetitions)
    print(f"{'layers':8}{'T × D × hidden':>20}{'median':>8}{'least':>8}{'most':>8}{'DTensor':>12}")
    for name, shape in SHAPES.items():
        found, dtensor = ratios(shape, repetitions)
        numbers = "".join(f"{n:8.2f}" for n in (statistics.median(found), min(found), max(found)))
        print(f"{name:8}{' × '.join(map(str, shape)):>20}{numbers}{1e3 * dtensor:9.1f} ms")


if __name__ == "__main__":
    main()
