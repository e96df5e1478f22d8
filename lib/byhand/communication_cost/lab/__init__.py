"""Collectives timed on real ranks, over sizes: what lecture 04 runs. `pictures` draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from byhand.collectives.with_torch import ALL_GATHER, REDUCE_SCATTER
from byhand.communication_cost import Cost, bus_bandwidth, cost, literature_formula
from byhand.communication_cost.timing import Timing, device, take_turns
from byhand.runtime import Run, VirtualNetwork, launch

if TYPE_CHECKING:  # ranks import this module: matplotlib and scipy would cost each of them seconds
    from byhand.communication_cost.fit import Fit
    from byhand.figures.style import CourseFigure

ELEMENT_BYTES = 4
CALLS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "send")
SIZES = tuple(4**power for power in range(3, 12))  # 64 B to 4 MB


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

    def fit(self, sizes: Sequence[int] | None = None, formula: Callable | None = None) -> Fit:
        """Alpha and beta of these sizes (None: all), by a formula of ranks and bytes or by ours."""
        from byhand.communication_cost.fit import fit

        formula = formula or partial(cost, self.collective)
        timings = {size: self.timings[size] for size in sizes or self.timings}
        costs = [formula(self.num_ranks, size) for size in timings]
        medians, doubts = zip(*((t.median, t.doubt) for t in timings.values()), strict=True)
        return fit(costs, medians, doubts)

    def points(self) -> list[tuple[float, float, float, float]]:
        """(bytes, seconds, and the quartiles) of all sizes, for a figure."""
        return [(size, t.median, *t.quartiles) for size, t in self.timings.items()]

    def __repr__(self) -> str:
        row = "{:>10} {:>10} {:>17} {:>8} {:>8}".format
        lines = [row("bytes", "time (us)", "quartiles", "algbw", "busbw") + "  MB/s"]
        for num_bytes, timing in self.timings.items():
            low, high = (1e6 * seconds for seconds in timing.quartiles)
            bus = bus_bandwidth(self.collective, self.num_ranks, num_bytes, timing.median)
            rates = [f"{rate / 1e6:.1f}" for rate in (num_bytes / timing.median, bus)]
            seconds = f"{1e6 * timing.median:.0f}", f"{low:.0f} to {high:.0f}"
            lines.append(row(f"{num_bytes:,}", *seconds, *rates))
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

    def on_rank(rank: int, world_size: int) -> list[Timing]:
        """The same on all ranks that take part."""
        group = dist.group.WORLD
        if collective == "send":  # a rank that does nothing would count as late, or as early
            group = dist.new_group([0, world_size - 1])
            if rank not in (0, world_size - 1):
                return []
        calls = {number: _call(collective, count) for number, count in enumerate(counts)}
        return list(take_turns(calls, repetitions, group=group).values())

    run = launch(on_rank, world_size, **options)
    timings = {ELEMENT_BYTES * n: t for n, t in zip(counts, run.results[0], strict=True)}
    return Sweep(collective, world_size, timings, run)


@dataclass(repr=False)
class FormulaRace:
    """An all-reduce's time by number of hosts; two formulas that were fitted to the first."""

    measured: dict[int, Timing]
    predicted: dict[str, list[float]]  # seconds at each number, by formula

    def __repr__(self) -> str:
        lines = []
        for index, (hosts, timing) in enumerate(self.measured.items()):
            off = {name: found[index] / timing.median - 1 for name, found in self.predicted.items()}
            told = ", ".join(f"{name} {error:+.0%}" for name, error in off.items())
            lines.append(f"{hosts} hosts: {timing}; {told}")
        return "\n".join(lines)

    def _repr_svg_(self) -> str:
        return self.picture()._repr_svg_()

    def picture(self) -> CourseFigure:
        """Milliseconds over hosts."""
        from byhand.figures import curves

        hosts, timings = list(self.measured), list(self.measured.values())
        seconds = {"measured": [timing.median for timing in timings], **self.predicted}
        lines = {name: [1e3 * s for s in found] for name, found in seconds.items()}
        quartiles = [timing.quartiles for timing in timings]
        band = {"measured": [(1e3 * low, 1e3 * high) for low, high in quartiles]}
        off = max(found[-1] for found in self.predicted.values()) / timings[-1].median
        title = (
            f"Fitted to {hosts[0]} hosts, one formula says {off:.1f} times the time of {hosts[-1]}"
        )
        axes = "hosts", "milliseconds"
        return curves(lines, *axes, title, hosts, spread=band, log_x=True, from_zero=True)


def formula_race(num_hosts: Sequence[int] = (2, 4, 8), repetitions: int = 7) -> FormulaRace:
    """Fit both formulas to the first number of hosts, and hold both against the others.

    1 MB, on hosts of one rank each with 25 MB/s; the fit sees smaller sizes too.
    """
    num_bytes = 1 << 20
    sweeps: dict[int, Sweep] = {}
    for hosts in num_hosts:
        network = VirtualNetwork(hosts, 1, bytes_per_second=25e6)
        sizes = [num_bytes] if sweeps else [num_bytes >> shift for shift in range(16, -1, -2)]
        sweeps[hosts] = sweep("all_reduce", hosts, sizes, repetitions, network=network)
    formulas: dict[str, Callable[[int, int], Cost]] = {
        "ring": partial(cost, "ring"),
        "α log n + β S n": literature_formula,
    }
    predicted = {}
    for name, formula in formulas.items():
        line = sweeps[num_hosts[0]].fit(formula=formula).line
        predicted[name] = [line.of(formula(hosts, num_bytes)) for hosts in num_hosts]
    return FormulaRace({n: one.timings[num_bytes] for n, one in sweeps.items()}, predicted)


def _call(collective: str, count: int) -> Callable[[], Any]:
    """One of CALLS on tensors made here, of `count` elements in the whole."""
    world_size = dist.get_world_size()
    whole, other = torch.zeros(2, count, device=device())
    shard = torch.zeros(count // world_size, device=device())
    if collective == "send" and dist.get_rank() > 0:
        return lambda: dist.recv(whole, 0)
    return {
        "all_reduce": lambda: dist.all_reduce(whole),
        "broadcast": lambda: dist.broadcast(whole, 0),
        "all_gather": lambda: ALL_GATHER(whole, shard),
        "reduce_scatter": lambda: REDUCE_SCATTER(shard, whole),
        "all_to_all": lambda: dist.all_to_all_single(other, whole),
        "send": lambda: dist.send(whole, world_size - 1),
    }[collective]
