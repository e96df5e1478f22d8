"""Our step of each ZeRO stage over torch's, and DeepSpeed's where it is installed: taking turns.

    python tests/benchmarks/zero.py [repetitions]
    pip install -c constraints.txt -e '.[frameworks]'    # DeepSpeed

Stage 1 over ZeroRedundancyOptimizer (on DDP), stage 3 over FSDP2 with every linear layer a unit,
both with resharding and without, and our hooks on the same modules over the same. One step is
everything: forward, loss, backward, SGD with momentum. All start from a barrier, take turns in one
launch, and the slowest rank counts. The ratio is the median of the repetitions' ratios, with its
quartiles; that of processor time, summed over ranks, is beside it: other programs disturb it less.
A second table counts what each sends in a step, and the most it holds.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import statistics
import sys
import time
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from byhand import launch
from byhand.model.mlp import MLP, random_weights, softmax_cross_entropy
from byhand.model.optimizers import SGD
from byhand.runtime.trace import recorder
from byhand.zero import ShardedGradients, ShardedModule, ShardedOptimizer, ShardedParameters
from byhand.zero.exchange import exchange

WORLD_SIZE, REPETITIONS, WARM_UP = 2, 30, 3
SIZES = {  # name: (layer sizes, rows a rank)
    "small: 4 × 64²": ([64] * 5, 64),
    "medium: 6 × 512²": ([512] * 7, 128),
    "large: 6 × 1024²": ([1024] * 7, 128),
}
EXCHANGED = partial(ShardedOptimizer, reduce_scatter=exchange)
RATE = {"lr": 1e-3, "momentum": 0.9}
AGAINST = {  # ours: theirs
    "stage 1": ("ZeroRedundancyOptimizer", "DeepSpeed 1"),
    "stage 1, exchanged": ("ZeroRedundancyOptimizer", "DeepSpeed 1"),
    "stage 2": ("DeepSpeed 2",),
    "stage 3": ("FSDP2", "DeepSpeed 3"),
    "stage 3, kept": ("FSDP2, kept",),
    "hooks": ("FSDP2", "DeepSpeed 3"),
}


def by_hand(stage, weights, x, labels):
    """A function that takes one step with byhand.zero."""
    model = MLP.from_weights(weights)
    # Stage 1 frees nothing before the step: one unit, as ZeroRedundancyOptimizer has one bucket.
    layers = [model] if stage in (ShardedOptimizer, EXCHANGED) else model.layers
    model = stage(layers, partial(SGD, **RATE))
    global_batch = len(x) * dist.get_world_size()

    def step():
        logits, saved = model.forward(x)
        model.backward(softmax_cross_entropy(logits, labels, global_batch)[1], saved)
        model.step()

    return step


def modules(weights):
    """The same layers as torch's modules."""
    layers = []
    for weight, bias in weights:
        linear = nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data, linear.bias.data = weight.clone(), bias.clone()
        layers += [nn.ReLU(), linear] if layers else [linear]
    return nn.Sequential(*layers)


def with_torch(how, weights, x, labels):
    """The same with FSDP2, ZeroRedundancyOptimizer, or our hooks."""
    model, after = modules(weights), None
    linears = [layer for layer in model if isinstance(layer, nn.Linear)]
    if how == "ZeroRedundancyOptimizer":
        model = DistributedDataParallel(model)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, **RATE)
    elif how == "hooks":
        sharded = ShardedModule(model, linears)
        optimizer, after = (
            torch.optim.SGD(sharded.parameters(), foreach=True, **RATE),
            sharded.finish,
        )
    else:
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for part in (*linears, model):
            fully_shard(part, mesh=mesh, reshard_after_forward=how == "FSDP2")
        optimizer = torch.optim.SGD(model.parameters(), foreach=True, **RATE)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x), labels).backward()
        if after is not None:
            after()
        optimizer.step()

    return step


def with_deepspeed(stage, weights, x, labels):
    """The same with DeepSpeed."""
    import deepspeed

    sys.modules["deepspeed.ops"].__dict__["__compatible_ops__"] = {}  # or it compiles a helper
    model = modules(weights)
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), foreach=True, **RATE),
        config={
            "train_micro_batch_size_per_gpu": len(x),
            "zero_optimization": {
                "stage": stage,
                "reduce_bucket_size": sum(weight.numel() for weight, _ in weights),
                "stage3_param_persistence_threshold": 0,  # else small parameters stay whole
            },
            "zero_allow_untested_optimizer": True,
        },
        dist_init_required=False,
    )

    def step():
        engine.backward(F.cross_entropy(engine(x), labels))
        engine.step()

    return step


def ways() -> dict:
    """What takes turns, by name."""
    found = {
        "stage 1": partial(by_hand, ShardedOptimizer),
        "stage 1, exchanged": partial(by_hand, EXCHANGED),
        "stage 2": partial(by_hand, ShardedGradients),
        "stage 3": partial(by_hand, ShardedParameters),
        "stage 3, kept": partial(by_hand, partial(ShardedParameters, reshard=False)),
    }
    for how in ("hooks", "ZeroRedundancyOptimizer", "FSDP2", "FSDP2, kept"):
        found[how] = partial(with_torch, how)
    if importlib.util.find_spec("deepspeed"):
        found |= {f"DeepSpeed {stage}": partial(with_deepspeed, stage) for stage in (1, 2, 3)}
    return found


def race(rank, world_size, sizes, num_rows, repetitions):
    """(seconds, processor seconds) of each repetition, by way, on this rank."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(num_rows, sizes[0], generator=generator)
    labels = torch.randint(sizes[-1], (num_rows,), generator=generator)
    steps = {name: make(random_weights(sizes), x, labels) for name, make in ways().items()}
    names, measured = list(steps), {name: [] for name in steps}
    for repetition in range(repetitions + WARM_UP):
        for turn in range(len(names)):
            name = names[(repetition + turn) % len(names)]
            dist.barrier()
            before = time.perf_counter(), time.process_time()
            steps[name]()
            spent = time.perf_counter() - before[0], time.process_time() - before[1]
            if repetition >= WARM_UP:
                measured[name].append(spent)
    return measured


def one_way(rank, world_size, name, sizes, num_rows):
    """Three steps; the peak is that of the last two."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    x, labels = torch.ones(num_rows, sizes[0]), torch.zeros(num_rows, dtype=torch.long)
    step = ways()[name](random_weights(sizes), x, labels)
    step()
    recorder.active.memory.peak_bytes = 0  # all models were built from whole weights
    dist.barrier()
    step()
    dist.barrier()
    step()


def count() -> None:
    """Print what every way sends in its third step, and the most that it holds, on four ranks."""
    sizes, num_ranks = [256] * 7, 4
    num_bytes = 4 * 6 * 256 * 257  # S
    print(
        f"\nthe third step on {num_ranks} ranks, 6 × 256², SGD with momentum; peak of the last two"
    )
    print(f"{'':<25}{'calls':>6}{'sent / S (n-1)/n':>18}{'peak / S':>10}")
    for name in ways():
        run = launch(one_way, num_ranks, (name, sizes, 8), memory=True, deadline=120)
        calls = run.ledger.select(rank=0)
        last = max(place for place, event in enumerate(calls) if event.op == "barrier")
        sent = sum(event.sent_bytes for event in calls[last + 1 :]) * num_ranks / (num_ranks - 1)
        row = f"{len(calls) - last - 1:>6}{sent / num_bytes:>18.2f}"
        print(f"{name:<25}{row}{max(run.peak_bytes) / num_bytes:>10.2f}", flush=True)


def together(by_rank, name):
    """Of each repetition: the slowest rank's seconds, and all ranks' processor seconds."""
    repetitions = list(zip(*(measured[name] for measured in by_rank), strict=True))
    seconds = [max(clock for clock, _ in ranks) for ranks in repetitions]
    return seconds, [sum(processor for _, processor in ranks) for ranks in repetitions]


def report(repetitions: int) -> None:
    """Print the table: medians, and the ratio ours over theirs with its quartiles."""
    print(f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, gloo")
    print(f"\none step on {WORLD_SIZE} ranks, {repetitions} repetitions")
    columns = f"{'ours':>10}{'theirs':>10}{'ratio':>8}{'quartiles':>14}{'processor':>11}"
    print(f"{'layers':<18}{'ours':<15}{'against':<25}{columns}")
    for name, (sizes, num_rows) in SIZES.items():
        by_rank = launch(race, WORLD_SIZE, (sizes, num_rows, repetitions), deadline=600).results
        for way, theirs in AGAINST.items():
            for other in (other for other in theirs if other in by_rank[0]):
                mine, rival = together(by_rank, way), together(by_rank, other)
                clock, processor = (
                    [a / b for a, b in zip(*pair, strict=True)]
                    for pair in zip(mine, rival, strict=True)
                )
                least, _, most = statistics.quantiles(clock, n=4)
                times = [1e3 * statistics.median(seconds) for seconds in (mine[0], rival[0])]
                ratio = f"{statistics.median(clock):8.2f}{f'{least:.2f} to {most:.2f}':>14}"
                row = (
                    f"{times[0]:8.2f}ms{times[1]:8.2f}ms{ratio}{statistics.median(processor):11.2f}"
                )
                print(f"{name:<18}{way:<15}{other:<25}{row}", flush=True)
    print("aim: ratio ≤ 1.00")


if __name__ == "__main__":
    report(int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS)
    count()
