"""A causal attention over ranks that sleeps: messages are real, blocks take the time asked for.

Keys and values cross slow links: see byhand.tools.asleep.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

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

FEATURES, TRIES = 1024, 3  # of a sleeping attention's keys, in float32; of each measurement


def _block_seconds(rank: int, owner: int, total: int, layout: str, compute: float) -> float:
    length = total // dist.get_world_size()
    return compute * pairs(rank, owner, length, layout, True) / (total * (total + 1) / 2)


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
