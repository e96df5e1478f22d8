"""What recording costs: recorded over bare, in the same ranks, taking turns.

    python tests/benchmarks/recorder.py [rounds]

Two ranks work with the recorder that every launch has, and with none: its kernels destroyed, and
every function of torch that it wrapped put back; and, for the floor, with one that writes nothing:
what it costs that torch calls a kernel in Python. In each round all three are timed, forwards in
every other and backwards in the others; a round's ratio is that of the slower rank's median times.
Told are the median of the rounds' ratios and their quartiles, and the floor's median.
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


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """This rank with all of the recorder's kernels and wrappers, and nobody to write."""
    active, recorder.active = recorder.active, None
    yield
    recorder.active = active


WAYS = {"recorded": contextlib.nullcontext, "bare": bare, "floor": silent}


def median_seconds(work: Callable[[], object], repetitions: int) -> float:
    """Of some repetitions on this rank, after a few that do not count."""
    seconds = []
    for repetition in range(-3, repetitions):
        begun = time.perf_counter()
        work()
        if repetition >= 0:
            seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def compare(rank: int, world_size: int, name: str, rounds: int) -> list[dict[str, float]]:
    """Of each round, median seconds on this rank, each of the WAYS."""
    chosen = next(work for work in WORKS if work.name == name)
    work, found = chosen.make(), []
    for number in range(-1, rounds):
        seconds = {}
        for way in list(WAYS)[:: 1 if number % 2 else -1]:
            dist.barrier()
            with WAYS[way]():
                seconds[way] = median_seconds(work, chosen.repetitions)
        found.append(seconds)
    return found[1:]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, gloo")
    print(f"recorded over bare, {WORLD_SIZE} ranks, {rounds} rounds")
    print(f"{'':<24}{'bare':>12}{'ratio':>8}{'quartiles':>16}{'floor':>8}   aim")
    for work in WORKS:
        by_rank = launch(compare, WORLD_SIZE, (work.name, rounds), deadline=500).results
        slower = [
            {way: max(found[way] for found in ranks) for way in WAYS}
            for ranks in zip(*by_rank, strict=True)
        ]
        ratios = [found["recorded"] / found["bare"] for found in slower]
        floor = statistics.median(found["floor"] / found["bare"] for found in slower)
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        microseconds = 1e6 * statistics.median(found["bare"] for found in slower)
        row = f"{work.name:<24}{microseconds:9.1f} µs{middle:8.3f}{low:9.3f}–{high:.3f}"
        print(f"{row}{floor:9.3f}   ≤ {work.aim}")


if __name__ == "__main__":
    main()
