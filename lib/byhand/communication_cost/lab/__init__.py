"""Collectives timed on real ranks, over sizes: what lecture 04 runs. `pictures` draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from byhand.collectives.with_torch import ALL_GATHER, REDUCE_SCATTER
from byhand.communication_cost import bus_bandwidth, cost
from byhand.communication_cost.timing import Timing, device, take_turns
from byhand.runtime import Run, launch

if TYPE_CHECKING:  # ranks import this module: matplotlib and scipy would cost each of them seconds
    from byhand.communication_cost.fit import Fit

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
        ValueError: a collective not in CALLS, or a send on one rank.
    """
    if collective not in CALLS:
        raise ValueError(f"unknown collective {collective!r}; known are {', '.join(CALLS)}")
    if collective == "send" and world_size < 2:
        raise ValueError(
            f"world_size is {world_size}, but a send goes from the first rank to the last: give "
            "two ranks or more"
        )
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


def sweep_of(run: Run, collective: str = "all_reduce", skip: int = 1) -> Sweep:
    """The timings in a run whose ranks return, by size, (start, end) of each try.

    The first `skip` tries do not count; a time is from the last start to the last end.
    """
    timings = {}
    for num_bytes in run.results[0]:
        tries = list(zip(*(stamps[num_bytes] for stamps in run.results), strict=True))[skip:]
        starts, ends = zip(*(zip(*one, strict=True) for one in tries), strict=True)
        seconds = [max(end) - max(start) for start, end in zip(starts, ends, strict=True)]
        timings[num_bytes] = Timing(tuple(seconds))
    return Sweep(collective, run.world_size, timings, run)


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
