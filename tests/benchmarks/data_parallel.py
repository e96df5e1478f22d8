"""Our data-parallel step over torch's DDP: the same model, the same ranks, taking turns.

    python tests/benchmarks/data_parallel.py [repetitions]

One step is everything: gradients to zero, forward, loss, backward with its all-reduces, SGD. Both
sides start from a barrier, ours and DDP's turn about in one launch, and the slowest rank counts.
The ratio is the median of the repetitions' ratios. That of processor time, summed over ranks, is
beside it: other programs on the machine disturb it less.
DDP is tried with its defaults and with gradient_as_bucket_view=True, which spares it a copy; our
gradients are views of the buckets always.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from byhand import launch
from byhand.data_parallel import DataParallel
from byhand.model.mlp import MLP, random_weights, softmax_cross_entropy
from byhand.model.optimizers import SGD

WORLD_SIZE = 2
REPETITIONS = 30
SIZES = {  # name: (layer sizes, rows a rank)
    "small: 4 × 64²": ([64] * 5, 64),
    "medium: 6 × 512²": ([512] * 7, 128),
    "large: 6 × 1024²": ([1024] * 7, 128),
}
LEARNING_RATE = 1e-3
WARM_UP = 3  # DDP lays its buckets out anew after its first step


def our_step(weights, x, labels):
    """A function that takes one step with byhand.data_parallel."""
    model = DataParallel(MLP.from_weights(weights))
    optimizer = SGD(model.parameters(), LEARNING_RATE)
    global_batch = len(x) * dist.get_world_size()

    def step():
        model.zero_gradients()
        logits, saved = model.forward(x)
        _, grad_logits = softmax_cross_entropy(logits, labels, global_batch)
        model.backward(grad_logits, saved)
        optimizer.step(model.gradients())

    return step


def ddp_step(weights, x, labels, **options):
    """The same with DDP."""
    layers = []
    for weight, bias in weights:
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data, linear.bias.data = weight.clone(), bias.clone()
        layers += [torch.nn.ReLU(), linear] if layers else [linear]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), **options)
    optimizer = torch.optim.SGD(model.parameters(), LEARNING_RATE, foreach=True)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x), labels).backward()
        optimizer.step()

    return step


def compare(rank: int, world_size: int, sizes: list[int], num_rows: int, repetitions: int):
    """(seconds, processor seconds) of each repetition, by way, on this rank."""
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(num_rows, sizes[0], generator=generator)
    labels = torch.randint(sizes[-1], (num_rows,), generator=generator)
    weights = random_weights(sizes)
    ways = {
        "ours": our_step(weights, x, labels),
        "DDP": ddp_step(weights, x, labels),
        "DDP, views": ddp_step(weights, x, labels, gradient_as_bucket_view=True),
    }
    names = list(ways)
    measured = {name: [] for name in names}
    for repetition in range(repetitions + WARM_UP):
        for turn in range(len(names)):
            name = names[(repetition + turn) % len(names)]
            dist.barrier()
            before = time.perf_counter(), time.process_time()
            ways[name]()
            spent = time.perf_counter() - before[0], time.process_time() - before[1]
            if repetition >= WARM_UP:
                measured[name].append(spent)
    return measured


def together(by_rank: list[dict], name: str) -> tuple[list[float], list[float]]:
    """Of each repetition: the slowest rank's seconds, and all ranks' processor seconds."""
    repetitions = list(zip(*(measured[name] for measured in by_rank), strict=True))
    seconds = [max(clock for clock, _ in ranks) for ranks in repetitions]
    return seconds, [sum(processor for _, processor in ranks) for ranks in repetitions]


def report(repetitions: int) -> None:
    """Print the table: medians, and the ratio ours over DDP's with its spread."""
    print(f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, gloo")
    print(f"\none data-parallel step on {WORLD_SIZE} ranks, {repetitions} repetitions")
    columns = f"{'ours':>10}{'theirs':>10}{'ratio':>8}{'min':>7}{'max':>7}{'processor':>11}"
    print(f"{'layers':<17}{'against':<12}{columns}")
    for name, (sizes, num_rows) in SIZES.items():
        by_rank = launch(compare, WORLD_SIZE, (sizes, num_rows, repetitions), deadline=300).results
        ours = together(by_rank, "ours")
        for way in ("DDP", "DDP, views"):
            theirs = together(by_rank, way)
            clock, processor = (
                [a / b for a, b in zip(*pair, strict=True)]
                for pair in zip(ours, theirs, strict=True)
            )
            mine, other = (1e3 * statistics.median(seconds) for seconds in (ours[0], theirs[0]))
            ratio = f"{statistics.median(clock):8.2f}{min(clock):7.2f}{max(clock):7.2f}"
            row = f"{mine:8.2f}ms{other:8.2f}ms{ratio}{statistics.median(processor):11.2f}"
            print(f"{name:<17}{way:<12}{row}")
    print("aim: ratio ≤ 1.00")


if __name__ == "__main__":
    report(int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS)
