"""Collectives timed on real ranks, over sizes: what lectures, benchmarks and widgets draw."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from byhand.communication_cost.fit import Fit, fit
from byhand.communication_cost.model import bus_bandwidth, cost, literature_formula
from byhand.communication_cost.timing import Timing, device, naive_bandwidth, take_turns, time_call
from byhand.runtime import Run, VirtualNetwork, launch

if TYPE_CHECKING:  # ranks import this module, and matplotlib would cost each of them a second
    from byhand.figures.style import CourseFigure

LITERATURE = "alpha log P + beta m P"
ELEMENT_BYTES = 4
SIZES = tuple(4**power for power in range(1, 12))  # 4 B to 4 MB


@dataclass(repr=False)
class Sweep:
    """One collective's timings by its number of bytes, on `num_ranks` ranks."""

    collective: str
    num_ranks: int
    timings: dict[int, Timing]
    run: Run

    @property
    def seconds(self) -> dict[int, float]:
        """The median of each size."""
        return {num_bytes: timing.median for num_bytes, timing in self.timings.items()}

    def fit(self, sizes: Sequence[int] | None = None, algorithm: str | None = None) -> Fit:
        """Alpha and beta of these sizes (None: all), under an algorithm (None: the default)."""
        chosen = list(self.timings) if sizes is None else list(sizes)
        name = algorithm or self.collective
        costs = [cost(name, self.num_ranks, num_bytes) for num_bytes in chosen]
        timings = [self.timings[num_bytes] for num_bytes in chosen]
        return fit(costs, [t.median for t in timings], [t.doubt for t in timings])

    def points(self, sizes: Sequence[int] | None = None) -> list[tuple[float, ...]]:
        """(bytes, seconds, and the quartiles) of these sizes (None: all), for a figure."""
        chosen = list(self.timings) if sizes is None else list(sizes)
        return [(size, self.timings[size].median, *self.timings[size].quartiles) for size in chosen]

    def __repr__(self) -> str:
        lines = [
            f"{'bytes':>10} {'time (us)':>10} {'quartiles':>17} {'algbw':>8} {'busbw':>8}  MB/s"
        ]
        for num_bytes, timing in self.timings.items():
            low, high = (1e6 * seconds for seconds in timing.quartiles)
            bus = bus_bandwidth(self.collective, self.num_ranks, num_bytes, timing.median)
            lines.append(
                f"{num_bytes:>10,} {1e6 * timing.median:>10.0f} {f'{low:.0f} to {high:.0f}':>17} "
                f"{num_bytes / timing.median / 1e6:>8.1f} {bus / 1e6:>8.1f}"
            )
        return "\n".join(lines)


def sweep(
    collective: str = "all_reduce",
    world_size: int = 2,
    sizes: Sequence[int] = SIZES,
    repetitions: int = 15,
    **options: Any,
) -> Sweep:
    """Time torch's collective for every size, the sizes taking turns. options: of `launch`.

    sizes: in bytes as nccl-tests counts them; rounded up to whole elements for every rank.

    Raises:
        ValueError: a collective not in CALLS.
    """
    if collective not in CALLS:
        raise ValueError(f"unknown collective {collective!r}; known are {', '.join(CALLS)}")
    step = 1 if collective in ("send", "broadcast", "all_reduce") else world_size
    counts = [-(-num_bytes // (ELEMENT_BYTES * step)) * step for num_bytes in sizes]
    run = launch(_sweep_on_rank, world_size, (collective, counts, repetitions), **options)
    timings = {ELEMENT_BYTES * n: t for n, t in zip(counts, run.results[0], strict=True)}
    return Sweep(collective, world_size, timings, run)


def _sweep_on_rank(
    rank: int, world_size: int, collective: str, counts: list[int], repetitions: int
) -> list[Timing]:
    group = dist.group.WORLD
    if collective == "send":  # a rank that does nothing would count as late, or as early
        group = dist.new_group([0, world_size - 1])
        if rank not in (0, world_size - 1):
            return []
    calls = {number: CALLS[collective](count) for number, count in enumerate(counts)}
    return list(take_turns(calls, repetitions, group=group).values())


@dataclass(repr=False)
class FormulaRace:
    """An all-reduce's time over numbers of hosts; two formulas that were fitted to the first."""

    num_hosts: tuple[int, ...]
    num_bytes: int
    measured: list[Timing]
    predicted: dict[str, list[float]]

    def __repr__(self) -> str:
        lines = []
        for index, (hosts, timing) in enumerate(zip(self.num_hosts, self.measured, strict=True)):
            off = {name: s[index] / timing.median - 1 for name, s in self.predicted.items()}
            told = ", ".join(f"{name} {error:+.0%}" for name, error in off.items())
            lines.append(f"{hosts} hosts: {timing}; {told}")
        return "\n".join(lines)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return self.picture()._repr_png_()

    def picture(self) -> CourseFigure:
        """Milliseconds over hosts."""
        from byhand.figures import curves

        lines = {"measured": [1e3 * timing.median for timing in self.measured]}
        lines |= {name: [1e3 * s for s in found] for name, found in self.predicted.items()}
        band = {"measured": [tuple(1e3 * s for s in t.quartiles) for t in self.measured]}
        off = max(found[-1] for found in self.predicted.values()) / self.measured[-1].median
        title = f"Fitted to {self.num_hosts[0]} hosts, one formula is {off:.1f} times too slow at "
        title += f"{self.num_hosts[-1]}"
        axes = {"xlabel": "hosts", "ylabel": "milliseconds", "x": list(self.num_hosts)}
        return curves(lines, title=title, spread=band, log_x=True, from_zero=True, **axes)


def formula_race(
    num_hosts: Sequence[int] = (2, 4, 8),
    num_bytes: int = 1 << 20,
    repetitions: int = 7,
    bytes_per_second: float = 25e6,
) -> FormulaRace:
    """Fit both formulas to the first number of hosts, and hold both against the others.

    Hosts of one rank each, on a virtual network; the fit sees sizes up to `num_bytes`.
    """
    small = [num_bytes >> shift for shift in range(2, 17, 2)]
    sweeps = {}
    for hosts in num_hosts:
        network = VirtualNetwork(hosts, 1, bytes_per_second)
        sizes = [*small, num_bytes] if hosts == num_hosts[0] else [num_bytes]
        sweeps[hosts] = sweep("all_reduce", hosts, sizes, repetitions, network=network)
    formulas = {"ring": partial(cost, "ring"), LITERATURE: literature_formula}
    first, predicted = sweeps[num_hosts[0]], {}
    for name, formula in formulas.items():
        timings = list(first.timings.values())
        costs = [formula(num_hosts[0], size) for size in first.timings]
        line = fit(costs, [t.median for t in timings], [t.doubt for t in timings]).line
        predicted[name] = [line.of(formula(hosts, num_bytes)) for hosts in num_hosts]
    measured = [sweeps[hosts].timings[num_bytes] for hosts in num_hosts]
    return FormulaRace(tuple(num_hosts), num_bytes, measured, predicted)


@dataclass
class Naive:
    """Bytes per second: what the usual snippet says on each of several tries, and what is so."""

    first_try: list[float]  # by rank
    later_tries: list[float]  # of rank 0
    algorithm: float
    bus: float
    barrier_share: float  # of the time that the snippet takes, once connected


def naive(
    num_bytes: int = 1 << 18, world_size: int = 2, repetitions: int = 15, **options: Any
) -> Naive:
    """The usual snippet beside a measurement of the same all-reduce on the same ranks."""
    results = launch(_naive_on_rank, world_size, (num_bytes, repetitions), **options).results
    seconds, barrier = results[0][2].median, results[0][3].median
    bus = bus_bandwidth("all_reduce", world_size, num_bytes, seconds)
    first = [result[0] for result in results]
    return Naive(first, results[0][1], num_bytes / seconds, bus, barrier / (barrier + seconds))


def _naive_on_rank(rank: int, world_size: int, num_bytes: int, repetitions: int) -> tuple:
    tensor = torch.zeros(num_bytes // ELEMENT_BYTES, device=device())
    first = naive_bandwidth(tensor)
    later = [naive_bandwidth(tensor) for _ in range(repetitions)]
    seconds = time_call(lambda: dist.all_reduce(tensor), repetitions)
    return first, later, seconds, time_call(dist.barrier, repetitions)


def gpu_topology() -> str:
    """How this machine's GPUs are joined, by `nvidia-smi topo -m`; or a sentence."""
    found = shutil.which("nvidia-smi")
    if found is None:
        return "no nvidia-smi on this machine: its ranks meet in main memory"
    done = subprocess.run([found, "topo", "-m"], capture_output=True, text=True, timeout=30)
    return done.stdout.strip() or done.stderr.strip()


def _all_reduce(count: int) -> Callable[[], Any]:
    tensor = torch.zeros(count, device=device())
    return lambda: dist.all_reduce(tensor)


def _broadcast(count: int) -> Callable[[], Any]:
    tensor = torch.zeros(count, device=device())
    return lambda: dist.broadcast(tensor, 0)


def _shards(collective: Callable, to_whole: bool) -> Callable[[int], Callable[[], Any]]:
    """A collective between a whole tensor and this rank's shard of it."""

    def make(count: int) -> Callable[[], Any]:
        whole = torch.zeros(count, device=device())
        shard = torch.zeros(count // dist.get_world_size(), device=device())
        return lambda: collective(whole, shard) if to_whole else collective(shard, whole)

    return make


def _all_to_all(count: int) -> Callable[[], Any]:
    given, taken = (torch.zeros(count, device=device()) for _ in range(2))
    return lambda: dist.all_to_all_single(taken, given)


def _send(count: int) -> Callable[[], Any]:
    """From rank 0 to the last rank."""
    tensor, last = torch.zeros(count, device=device()), dist.get_world_size() - 1
    if dist.get_rank() == 0:
        return lambda: dist.send(tensor, last)
    return lambda: dist.recv(tensor, 0)


CALLS: dict[str, Callable[[int], Callable[[], Any]]] = {
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "all_gather": _shards(dist.all_gather_into_tensor, True),
    "reduce_scatter": _shards(dist.reduce_scatter_tensor, False),
    "all_to_all": _all_to_all,
    "send": _send,
}
