"""A causal attention over ranks that sleeps: messages are real, blocks take the time asked for.

Keys and values cross slow links: see byhand.tools.asleep.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.communication_cost.model import AlphaBeta
from byhand.communication_cost.timing import Timing, take_turns
from byhand.context_parallel.cost import seconds
from byhand.context_parallel.gathered import gather
from byhand.context_parallel.heads import to_heads, to_positions
from byhand.context_parallel.places import ZIGZAG, pairs
from byhand.context_parallel.ring import around
from byhand.runtime import VirtualNetwork, launch
from byhand.tools.asleep import LINK as LINK
from byhand.tools.asleep import slow_link as slow_link
from byhand.tools.asleep import stretches

if TYPE_CHECKING:  # ranks import this module
    from byhand.figures.attention import Round

FEATURES, TRIES = 1024, 3  # of a sleeping attention's keys, in float32; of each measurement


def ring_asleep(world_size: int, layout: str, compute: float) -> list[list[Round]]:
    """Every rank's rounds of a causal forward of 1024 positions that sleeps.

    compute: seconds on one device. Of three, the one that other programs disturbed least.
    """
    from byhand.figures.attention import Round

    def on_rank(rank: int, world_size: int) -> list[list[tuple[int, float, float, float]]]:
        """(owner, start, end of computing, end of waiting) of each round, from the barrier's."""
        block, every = torch.zeros(2, 1024 // world_size, FEATURES), []
        for _ in around(block):
            pass  # the first messages of a pair also connect it
        for _ in range(TRIES):
            dist.barrier()
            zero, marks = time.monotonic(), []
            for owner, _ in around(block):
                start = time.monotonic() - zero
                work = _block_seconds(rank, owner, 1024, layout, compute)
                time.sleep(work)
                marks.append((owner, start, time.monotonic() - zero if work else start))
            ends = [start for _, start, _ in marks[1:]] + [marks[-1][2]]
            every.append([(*mark, end) for mark, end in zip(marks, ends, strict=True)])
        return every

    run, tries = launch(on_rank, world_size), []
    for number in range(TRIES):
        begun = [stretches(run, rank)[number + 1].begin for rank in range(world_size)]
        late, rows = [begin - min(begun) for begin in begun], []
        for found, start in zip(run.results, late, strict=True):
            rows.append([Round(at, *(t + start for t in edges)) for at, *edges in found[number]])
        tries.append(rows)
    return min(tries, key=ring_seconds)


def _block_seconds(rank: int, owner: int, total: int, layout: str, compute: float) -> float:
    length = total // dist.get_world_size()
    return compute * pairs(rank, owner, length, layout, True) / (total * (total + 1) / 2)


def ring_seconds(rows: Sequence[Sequence[Round]]) -> float:
    """From the first rank's start to the last one's end."""
    return max(row[-1].end for row in rows) - min(row[0].start for row in rows)


def ring(compute: float, num_positions: int) -> None:
    """A causal forward on this rank that sleeps instead of computing; its messages are real.

    compute: seconds on one device.
    """
    rank = dist.get_rank()
    for owner, _ in around(_inputs(num_positions)[1:]):
        time.sleep(_block_seconds(rank, owner, num_positions, ZIGZAG, compute))


def gathered(compute: float, num_positions: int) -> None:
    """The same, with all keys and values gathered first."""
    _, k, v = _inputs(num_positions)
    gather(k, v)
    time.sleep(compute / dist.get_world_size())


def ulysses(compute: float, num_positions: int) -> None:
    """The same, by all-to-alls."""
    q, _, _ = to_heads(_inputs(num_positions))
    time.sleep(compute / dist.get_world_size())
    to_positions(q)


def _inputs(num_positions: int) -> Tensor:
    """This rank's q, k, v [3, 1, n, s, d]."""
    n = dist.get_world_size()
    return torch.zeros(3, 1, n, num_positions // n, FEATURES // n)


ASLEEP = {"ring": ring, "gathered": gathered, "ulysses": ulysses}


def time_ways(
    world_size: int,
    lengths: Sequence[int],
    compute: Callable[[int], float],
    network: VirtualNetwork | None,
    repetitions: int = TRIES,
) -> dict[str, list[float]]:
    """Seconds of a forward of each way at each length, on the slowest rank: the fastest of all.

    The ways take turns. compute: of a length, on one device.
    """
    every = {(way, length): compute(length) for length in lengths for way in ASLEEP}

    def on_rank(rank: int, world_size: int) -> dict[tuple[str, int], Timing]:
        """The same on all ranks."""
        for forward in ASLEEP.values():
            forward(0.0, 8 * world_size)  # connects
        calls = {of: partial(ASLEEP[of[0]], much, of[1]) for of, much in every.items()}
        return take_turns(calls, repetitions, warm_up=0)

    found = launch(on_rank, world_size, network=network, deadline=120).results[0]
    return {way: [min(found[way, length].seconds) for length in lengths] for way in ASLEEP}


def predicted_ways(
    world_size: int, lengths: Sequence[int], compute: Callable[[int], float], line: AlphaBeta
) -> dict[str, list[float]]:
    """The same by byhand.context_parallel.cost's formulas."""

    def of(way: str, length: int) -> float:
        return seconds(way, world_size, compute(length), 4 * FEATURES * length, line)

    return {way: [of(way, length) for length in lengths] for way in ASLEEP}
