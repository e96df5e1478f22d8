"""A pipeline's step over torch.distributed.pipelining's; idle time and memory beside prediction.

    python tests/benchmarks/pipeline_parallel.py [repetitions]

1. Same model, same two ranks, same schedule. In one launch the two take turns, with a barrier
   before each; a repetition's ratio is the time of the slower rank by hand over the slower rank's
   with torch. Below 1.00 is faster than torch.
2. Idle fraction measured over predicted, four stages that sleep: so many stages that compute would
   fight for two cores. And two stages that compute, one per core.
3. Bytes of activations held per stage, GPipe against 1F1B: micro-batches in flight times what one
   saves, beside counted.
"""

from __future__ import annotations

import argparse
import statistics

import torch

from byhand import launch
from byhand.communication_cost.timing import take_turns
from byhand.model.mlp import MLP, ReLU, random_weights, softmax_cross_entropy
from byhand.pipeline_parallel import Pipeline, cut, partition, timeline
from byhand.pipeline_parallel.lab import held_activations, sleep_through
from byhand.pipeline_schedules import gpipe, interleaved, one_forward_one_backward, simulate

WORLD_SIZE, MICRO_BATCHES, REPETITIONS = 2, 8, 15
SHAPES = {"small": (16, 64), "medium": (64, 256), "large": (64, 1024)}  # rows, features
SCHEDULES = {"ScheduleGPipe": gpipe, "Schedule1F1B": one_forward_one_backward}
SECONDS = 0.1  # that a stage sleeps for a forward, and for each half of a backward


def by_hand(rank, world_size, weights, x, labels, name):
    """One step of byhand's Pipeline."""
    layers = MLP.from_weights(weights, ReLU).layers
    stage = MLP([layers[i] for i in partition(len(layers), world_size)[rank]])
    pipeline = Pipeline([stage], SCHEDULES[name](world_size, MICRO_BATCHES), x.shape[1:])
    micro_batches, targets = cut(x, MICRO_BATCHES), cut(labels, MICRO_BATCHES)

    def step():
        stage.zero_gradients()
        pipeline.step(micro_batches, targets, softmax_cross_entropy)

    return step, stage.gradients


def with_torch(rank, world_size, weights, x, labels, name):
    """One step of torch's schedule of that name."""
    from torch.distributed import pipelining
    from torch.nn import functional as F

    layers = []
    for weight, bias in weights:
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data, linear.bias.data = weight.clone(), bias.clone()
        layers += [torch.nn.ReLU(), linear] if layers else [linear]
    module = torch.nn.Sequential(*[layers[i] for i in partition(len(layers), world_size)[rank]])
    stage = pipelining.PipelineStage(module, rank, world_size, x.device)
    schedule = getattr(pipelining, name)(stage, MICRO_BATCHES, loss_fn=F.cross_entropy)
    first, last = rank == 0, rank == world_size - 1
    inputs, more = [x] if first else [], {"target": labels} if last else {}

    def step():
        module.zero_grad(set_to_none=False)
        schedule.step(*inputs, **more)

    return step, lambda: [p.grad for p in module.parameters()]


def race(rank, world_size, weights, x, labels, name, repetitions):
    """The times of both, after checking that they compute the same."""
    contenders = [
        make(rank, world_size, weights, x, labels, name) for make in (by_hand, with_torch)
    ]
    results = []
    for step, gradients in contenders:
        step()
        results.append(gradients())
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)
    return take_turns({i: step for i, (step, _) in enumerate(contenders)}, repetitions)


def ratios(name, shape, repetitions):
    """Of each repetition: the slower rank's time by hand over the slower rank's with torch."""
    rows, features = shape
    weights = random_weights([features] * 9)
    x = torch.randn(rows * MICRO_BATCHES, features)
    labels = torch.randint(features, (len(x),))
    run = launch(race, WORLD_SIZE, (weights, x, labels, name, repetitions), deadline=300)
    ours, theirs = run.results[0].values()
    return [a / b for a, b in zip(ours.seconds, theirs.seconds, strict=True)], theirs.median


def print_ratios(repetitions):
    print(f"pipeline step by hand over torch's, {WORLD_SIZE} ranks, 8 linear layers, ", end="")
    print(f"{MICRO_BATCHES} micro-batches, median of {repetitions}")
    print(
        f"{'schedule':16}{'layers':8}{'rows × D':>12}{'median':>8}{'least':>8}{'most':>8}", end=""
    )
    print(f"{'torch':>12}")
    for name in SCHEDULES:
        for size, shape in SHAPES.items():
            found, seconds = ratios(name, shape, repetitions)
            row = (statistics.median(found), min(found), max(found))
            numbers = "".join(f"{number:8.2f}" for number in row)
            print(f"{name:16}{size:8}{' × '.join(map(str, shape)):>12}{numbers}", end="")
            print(f"{1e3 * seconds:9.1f} ms", flush=True)


def print_idle(repetitions):
    print(f"\nidle fraction, measured over predicted, median of {repetitions}")
    print(f"{'schedule':40}{'predicted':>10}{'measured':>10}{'ratio':>8}")
    p, m = 4, MICRO_BATCHES
    for name, schedule, chunks in (
        ("GPipe", gpipe(p, m), 1),
        ("1F1B", one_forward_one_backward(p, m), 1),
        ("interleaved, 2 chunks", interleaved(p, m, 2), 2),
    ):
        costs = [SECONDS / chunks] * 3
        predicted = simulate(schedule, *costs).idle_fraction
        found = [sleep_through(schedule, *costs).idle_fraction for _ in range(repetitions)]
        _print_idle(f"{name}, {p} stages that sleep", predicted, statistics.median(found))
    for name, schedule in (("GPipe", gpipe(2, 4)), ("1F1B", one_forward_one_backward(2, 4))):
        found = [computed_idle(schedule) for _ in range(repetitions)]
        _print_idle(f"{name}, 2 stages that compute", 1 / 5, statistics.median(found))


def _print_idle(name, predicted, measured):
    ratio = measured / predicted
    print(f"{name:40}{predicted:10.3f}{measured:10.3f}{ratio:8.2f}", flush=True)


def computed_idle(schedule):
    """The idle fraction of a step of two equal stages of large layers."""
    weights = random_weights([1024] * 5)
    x = torch.randn(4 * 256, 1024)
    run = launch(compute, 2, (weights, x, schedule))
    return timeline(run.results).idle_fraction


def compute(rank, world_size, weights, x, schedule):
    # Equal stages: both end in an activation, and both make the gradient of their input.
    layers = MLP.from_weights(weights, ReLU).layers
    stage = MLP([*layers[4 * rank : 4 * rank + 3], ReLU()])
    stage.backward_first = stage.backward
    pipeline, micro_batches = Pipeline([stage], schedule, x.shape[1:]), cut(x, 4)
    targets = cut(torch.zeros(len(x), dtype=torch.long), 4)
    return [pipeline.step(micro_batches, targets, softmax_cross_entropy) for _ in range(3)][2]


def print_memory():
    p, m = 4, 16
    print(f"\nMB of activations held by each of {p} stages, {m} micro-batches: predicted | counted")
    for name, make in (("GPipe", gpipe), ("1F1B", one_forward_one_backward)):
        both = held_activations(make, p, m)
        predicted, counted = ("".join(f"{n / 1e6:7.2f}" for n in numbers) for numbers in both)
        print(f"{name:8}{predicted}  |{counted}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repetitions", nargs="?", type=int, default=REPETITIONS)
    repetitions = parser.parse_args().repetitions
    print_ratios(repetitions)
    print_idle(min(3, repetitions))
    print_memory()


if __name__ == "__main__":
    main()
