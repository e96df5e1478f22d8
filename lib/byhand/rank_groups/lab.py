"""What a recorded run sent from node to node, and how long arithmetic on many ranks takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from byhand.rank_groups.grid import RankGrid
from byhand.runtime import Run


def counted_leaving(
    run: Run, grid: RankGrid, ranks_per_node: int, names: Sequence[str], node: int = 0
) -> dict[str, float]:
    """By group name, the bytes that `node` sent to other nodes in ring collectives: the ledger's.

    A rank of a ring sends all it sends to the next rank of its group. Point-to-point messages and
    groups of other names are left out.
    """
    leaving = dict.fromkeys(names, 0.0)
    for event in run.ledger.events:
        if event.peer is not None or event.rank // ranks_per_node != node:
            continue
        after = event.group[(event.group.index(event.rank) + 1) % len(event.group)]
        for name in names:
            if after // ranks_per_node != node and event.group == _members(grid, name, event.rank):
                leaving[name] += event.sent_bytes
                break
    return leaving


def _members(grid: RankGrid, name: str, rank: int) -> tuple[int, ...]:
    group = grid.group(name, rank)
    return () if group is None else tuple(group.tolist())


def seconds(task: Callable[[], object], repetitions: int) -> tuple[float, float, float]:
    """The least, the median and the most that the task takes."""
    found = []
    for _ in range(repetitions):
        start = time.perf_counter()
        task()
        found.append(time.perf_counter() - start)
    return min(found), statistics.median(found), max(found)
