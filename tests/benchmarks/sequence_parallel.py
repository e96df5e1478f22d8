"""A sequence-parallel half layer's step and the split loss, by hand over DTensor's.

    python tests/benchmarks/sequence_parallel.py [repetitions]

half: norm, column, GELU, row with x and y sharded by token, forward and backward, against
SequenceParallel, ColwiseParallel and RowwiseParallel; both save the gathered input.
loss: the mean loss and the gradient of the logits, against F.cross_entropy in loss_parallel.
On 2 ranks of one thread each. In one launch the two take turns, with a barrier before each; a
repetition's ratio is the time of the slower rank by hand over the slower rank's with DTensor. Below
1.00 is faster than DTensor.
"""

from __future__ import annotations

import argparse
import statistics

import torch
import torch.distributed as dist
from torch.nn import functional as F

from byhand import launch
from byhand.communication_cost.timing import take_turns
from byhand.model.mlp import GELU, MLP, random_weights
from byhand.model.shards import shard
from byhand.sequence_parallel import (
    SequenceParallelMLP,
    SequenceParallelNorm,
    sum_partial_gradients,
    vocabulary_parallel_cross_entropy,
)

WORLD_SIZE, REPETITIONS = 2, 15
HALVES = {"small": (32, 64, 256), "medium": (256, 256, 1024), "large": (512, 1024, 4096)}
LOSSES = {"small": (32, 256), "medium": (256, 8192), "large": (512, 32768)}


def half_by_hand(weights, x, grad_y):
    """One step of byhand's norm and MLP."""
    features = x.shape[-1]
    norm = SequenceParallelNorm(torch.ones(features), torch.zeros(features))
    model = MLP([norm, SequenceParallelMLP(weights, GELU)])
    model.layers[1].layers[0].gather_again = False
    mine, grad_mine = shard(x, -2).contiguous(), shard(grad_y, -2).contiguous()

    def step():
        model.zero_gradients()
        y, saved = model.forward(mine)
        grad_x = model.backward(grad_mine, saved)
        sum_partial_gradients(model)
        return y, grad_x, norm.grad_gain

    return step


def half_with_dtensor(weights, x, grad_y):
    """One step of parallelize_module; the norm's gradient is asked for, which sums it."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor import parallel as tp

    norm = torch.nn.LayerNorm(x.shape[-1])
    linears = [torch.nn.Linear(w.shape[1], w.shape[0]) for w, _ in weights]
    for linear, (weight, bias) in zip(linears, weights, strict=True):
        linear.weight.data, linear.bias.data = weight.clone(), bias.clone()
    model = torch.nn.Sequential(norm, linears[0], torch.nn.GELU(), linears[1])
    plan = {
        "0": tp.SequenceParallel(),
        "1": tp.ColwiseParallel(input_layouts=Shard(1)),
        "3": tp.RowwiseParallel(output_layouts=Shard(1)),
    }
    tp.parallelize_module(model, init_device_mesh("cpu", (dist.get_world_size(),)), plan)
    mine, grad_mine = shard(x, -2).clone().requires_grad_(), shard(grad_y, -2).contiguous()

    def step():
        model.zero_grad(set_to_none=False)
        mine.grad = None
        y = model(mine)
        y.backward(grad_mine)
        sums = [p.grad.full_tensor() for p in norm.parameters()]
        return y.detach(), mine.grad, sums[0]

    return step


def loss_by_hand(logits, targets):
    """vocabulary_parallel_cross_entropy."""
    mine = shard(logits, 1).contiguous()
    return lambda: vocabulary_parallel_cross_entropy(mine, targets, vocabulary=logits.shape[1])


def loss_with_dtensor(logits, targets):
    """loss_parallel."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard
    from torch.distributed.tensor.parallel import loss_parallel

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    mine = shard(logits, 1).contiguous().requires_grad_()
    split = DTensor.from_local(mine, mesh, [Shard(1)], run_check=False)

    def step():
        mine.grad = None
        with loss_parallel():
            loss = F.cross_entropy(split, targets)
            loss.backward(retain_graph=True)
        return loss.to_local().detach(), mine.grad

    return step


CONTENDERS = {
    "half": (half_by_hand, half_with_dtensor),
    "loss": (loss_by_hand, loss_with_dtensor),
}


def race(rank, world_size, what, arguments, repetitions):
    """The times of both, after checking that they compute the same."""
    steps = [make(*arguments) for make in CONTENDERS[what]]
    for mine, theirs in zip(*(step() for step in steps), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    return take_turns(dict(enumerate(steps)), repetitions)


def arguments_of(what, shape):
    """What both contenders of a race are given."""
    if what == "loss":
        return torch.randn(*shape), torch.randint(shape[1], shape[:1])
    rows, features, hidden = shape
    return random_weights([features, hidden, features]), *torch.randn(2, 1, rows, features)


def ratios(what, shape, repetitions):
    """Of each repetition: the slower rank's time by hand over the slower rank's with DTensor."""
    arguments = what, arguments_of(what, shape), repetitions
    run = launch(race, WORLD_SIZE, arguments, deadline=300)
    ours, theirs = run.results[0].values()
    return [a / b for a, b in zip(ours.seconds, theirs.seconds, strict=True)], theirs.median


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repetitions", nargs="?", type=int, default=REPETITIONS)
    repetitions = parser.parse_args().repetitions
    print(f"sequence-parallel step by hand over DTensor's, {WORLD_SIZE} ranks, median of ", end="")
    print(repetitions)
    print(f"{'what':14}{'sizes':>20}{'median':>8}{'least':>8}{'most':>8}{'DTensor':>12}")
    for what, shapes in (("half", HALVES), ("loss", LOSSES)):
        for name, shape in shapes.items():
            found, dtensor = ratios(what, shape, repetitions)
            middle = statistics.median(found)
            numbers = "".join(f"{n:8.2f}" for n in (middle, min(found), max(found)))
            sizes = " × ".join(map(str, shape))
            print(f"{what} {name:9}{sizes:>20}{numbers}{1e3 * dtensor:9.1f} ms")


if __name__ == "__main__":
    main()
