"""A causal attention over ranks that sleeps: messages are real, blocks take the time asked for.

A rank that sleeps takes no core, so any number of them runs at full speed on two; keys and values
cross links as slow as one asks for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from byhand.communication_cost.model import AlphaBeta
from byhand.context_parallel.cost import WAYS, seconds
from byhand.context_parallel.gathered import gather
from byhand.context_parallel.heads import to_heads, to_positions
from byhand.context_parallel.places import ZIGZAG, pairs
from byhand.context_parallel.ring import around
from byhand.runtime import VirtualNetwork, launch, why_no_network

if TYPE_CHECKING:  # ranks import this module
    from byhand.figures.attention import Round

LINK = 25e6  # bytes a second
FEATURES = 128  # of a sleeping attention's keys, in float32
TIMED = [way for way in WAYS if way != "scores"]


def slow_link(world_size: int) -> VirtualNetwork | None:
    """Hosts of one rank each, joined by links of LINK; None where no network can be laid."""
    return None if why_no_network() else VirtualNetwork(world_size, 1, LINK)


def ring_asleep(
    world_size: int,
    layout: str,
    compute: float,
    num_positions: int = 1024,
    repetitions: int = 3,
) -> list[list[Round]]:
    """Every rank's rounds of a causal forward that sleeps; compute: seconds on one device.

    Of several, the one that other programs disturbed least.
    """
    from byhand.figures.attention import Round

    arguments = (layout, compute, num_positions, repetitions)
    run = launch(_rounds, world_size, arguments)
    every = []
    for number in range(repetitions):
        begun = [run.ledger.select("barrier", rank)[number].end for rank in range(world_size)]
        rows = [
            [
                Round(owner, *(moment + start - min(begun) for moment in edges))
                for owner, *edges in mine
            ]
            for mine, start in zip((found[number] for found in run.results), begun, strict=True)
        ]
        every.append(rows)
    return min(every, key=ring_seconds)


def _rounds(
    rank: int, world_size: int, layout: str, compute: float, total: int, repetitions: int
) -> list[list[tuple[int, float, float, float]]]:
    """(owner, start, end of computing, end of waiting) of each round, from the barrier's end."""
    block = torch.zeros(2, total // world_size, FEATURES)
    for _ in around(block):
        pass  # the first messages of a pair also connect it
    every = []
    for _ in range(repetitions):
        dist.barrier()
        zero, marks = time.monotonic(), []
        for owner, _ in around(block):
            start = time.monotonic() - zero
            work = _block_seconds(rank, owner, total, layout, compute)
            time.sleep(work)
            marks.append((owner, start, time.monotonic() - zero if work else start))
        ends = [start for _, start, _ in marks[1:]] + [marks[-1][2]]
        every.append([(*mark, end) for mark, end in zip(marks, ends, strict=True)])
    return every


def _block_seconds(rank: int, owner: int, total: int, layout: str, compute: float) -> float:
    length = total // dist.get_world_size()
    return compute * pairs(rank, owner, length, layout, True) / (total * (total + 1) / 2)


def ring_seconds(rows: Sequence[Sequence[Round]]) -> float:
    """From the first rank's start to the last one's end."""
    return max(row[-1].end for row in rows) - min(row[0].start for row in rows)


def forward(way: str, compute: float, num_positions: int) -> None:
    """A causal forward on this rank that sleeps instead of computing; its messages are real."""
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.zeros(3, 1, n, num_positions // n, FEATURES // n)  # q, k, v
    if way == "ring":
        for owner, _ in around(x[1:]):
            time.sleep(_block_seconds(rank, owner, num_positions, ZIGZAG, compute))
        return
    whole = gather(*x[1:]) if way == "gathered" else to_heads(x)
    time.sleep(compute / n)
    if way == "ulysses":
        to_positions(whole[0])


def time_ways(
    world_size: int,
    lengths: Sequence[int],
    compute: Callable[[int], float],
    network: VirtualNetwork | None,
    repetitions: int = 3,
) -> dict[str, list[float]]:
    """Seconds of a forward of each way at each length, on the slowest rank: medians.

    The ways take turns. compute: of a length, on one device.
    """
    arguments = (TIMED, lengths, [compute(length) for length in lengths], repetitions)
    run = launch(_take_turns, world_size, arguments, network=network, deadline=120)
    slowest = torch.tensor(run.results).amax(dim=0)  # [lengths, repetitions, ways]
    return {way: [median(t[:, i].tolist()) for t in slowest] for i, way in enumerate(TIMED)}


def _take_turns(rank, world_size, names, lengths, compute, repetitions) -> list:
    for way in names:
        forward(way, 0.0, 8 * world_size)  # connects
    return [
        [[_timed(way, much, length) for way in names] for _ in range(repetitions)]
        for length, much in zip(lengths, compute, strict=True)
    ]


def _timed(way: str, compute: float, length: int) -> float:
    dist.barrier()
    begun = time.monotonic()
    forward(way, compute, length)
    return time.monotonic() - begun


def predicted_ways(
    world_size: int, lengths: Sequence[int], compute: Callable[[int], float], line: AlphaBeta
) -> dict[str, list[float]]:
    """The same by byhand.context_parallel.cost's formulas."""

    def of(way: str, length: int) -> float:
        return seconds(way, world_size, compute(length), 4 * FEATURES * length, line)

    return {way: [of(way, length) for length in lengths] for way in TIMED}
