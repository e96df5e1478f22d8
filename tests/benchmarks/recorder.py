"""What recording costs: recorded over bare, in the same ranks, taking turns.

    python tests/benchmarks/recorder.py [rounds]

Two ranks work with the recorder that every launch has, and with none: its kernels destroyed, and
every function of torch that it wrapped put back. In each round both are timed, each first in every
other; a round's ratio is that of the slower rank's median times. Told are the median of the rounds'
ratios and their quartiles.
"""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch.nn.parallel import DistributedDataParallel

from byhand import launch
from byhand.runtime.trace import hooks, recorder

ROUNDS = 15
WORLD_SIZE = 2
WIDTH, LAYERS, ROWS = 512, 6, 64


@dataclass(frozen=True)
class Work:
    """Something to time; `aim`: the ratio that it should not exceed."""

    name: str
    make: Callable[[], Callable[[], object]]
    repetitions: int
    aim: float


def two_adds() -> Callable[[], object]:
    x = torch.ones(4)
    return lambda: x + 1 + 1


def all_reduce(num_bytes: int) -> Callable[[], object]:
    x = torch.zeros(num_bytes // 4)
    return lambda: dist.all_reduce(x)


def ddp_step() -> Callable[[], object]:
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x = torch.randn(ROWS, WIDTH)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step


WORKS = (
    Work("two adds", two_adds, 3000, 1.03),
    Work("all-reduce, 16 bytes", lambda: all_reduce(16), 300, 1.25),
    Work("all-reduce, 16 MB", lambda: all_reduce(16 << 20), 8, 1.02),
    Work(f"DDP step, {LAYERS} × {WIDTH}²", ddp_step, 15, 1.03),
)


@contextlib.contextmanager
def bare() -> Iterator[None]:
    """This rank as if the recorder had never been installed in it."""
    active, recorder.active = recorder.active, None
    while hooks._libraries:
        hooks._libraries.pop()._destroy()
    for owner in (c10d, dist, dist.Work):
        for name, value in list(vars(owner).items()):
            code = getattr(value, "__code__", None)
            if code is not None and code.co_filename == hooks.__file__:
                setattr(owner, name, value.__wrapped__)
    yield
    hooks.install()
    recorder.active = active


def median_seconds(work: Callable[[], object], repetitions: int) -> float:
    """Of some repetitions on this rank, after a few that do not count."""
    seconds = []
    for repetition in range(-3, repetitions):
        begun = time.perf_counter()
        work()
        if repetition >= 0:
            seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def compare(rank: int, world_size: int, name: str, rounds: int) -> list[tuple[float, float]]:
    """Of each round, (recorded, bare): median seconds on this rank."""
    chosen = next(work for work in WORKS if work.name == name)
    work, found = chosen.make(), []
    for number in range(-1, rounds):
        seconds = {}
        for recorded in (True, False) if number % 2 else (False, True):
            dist.barrier()
            with contextlib.nullcontext() if recorded else bare():
                seconds[recorded] = median_seconds(work, chosen.repetitions)
        found.append((seconds[True], seconds[False]))
    return found[1:]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, gloo")
    print(f"recorded over bare, {WORLD_SIZE} ranks, {rounds} rounds")
    print(f"{'':<24}{'bare':>12}{'ratio':>8}{'quartiles':>16}   aim")
    for work in WORKS:
        by_rank = launch(compare, WORLD_SIZE, (work.name, rounds), deadline=500).results
        slower = [
            [max(way) for way in zip(*ranks, strict=True)] for ranks in zip(*by_rank, strict=True)
        ]
        ratios = [recorded / bare for recorded, bare in slower]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        microseconds = 1e6 * statistics.median(bare for _, bare in slower)
        row = f"{work.name:<24}{microseconds:9.1f} µs{middle:8.3f}{low:9.3f}–{high:.3f}"
        print(f"{row}   ≤ {work.aim}")


if __name__ == "__main__":
    main()
