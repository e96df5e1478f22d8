"""Which layers of a model each stage of a pipeline gets. Pure."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from byhand.words import counted


def partition(
    num_layers: int, num_stages: int, costs: Sequence[float] | None = None
) -> list[range]:
    """The layers of each stage: as many each, or so that the costliest stage costs least.

    `costs[i]` is what layer i costs. Without costs, and where the layers do not divide, the first
    stages get one more.

    Raises:
        ValueError: more stages than layers, or not one cost per layer.

    >>> partition(7, 3)
    [range(0, 3), range(3, 5), range(5, 7)]
    >>> partition(4, 2, costs=[1, 1, 1, 5])
    [range(0, 3), range(3, 4)]
    """
    if not 1 <= num_stages <= num_layers:
        raise ValueError(
            f"{counted(num_layers, 'layer')} cannot make {counted(num_stages, 'stage')}: a stage"
            " has at least one layer"
        )
    if costs is not None:
        return _partition_by_cost(list(costs), num_layers, num_stages)
    size, extra = divmod(num_layers, num_stages)
    starts = [stage * size + min(stage, extra) for stage in range(num_stages + 1)]
    return [range(starts[stage], starts[stage + 1]) for stage in range(num_stages)]


def _partition_by_cost(costs: list[float], num_layers: int, num_stages: int) -> list[range]:
    if len(costs) != num_layers:
        raise ValueError(f"{len(costs)} costs for {num_layers} layers: each layer has one")

    @functools.cache
    def best(start: int, stages: int) -> tuple[float, tuple[int, ...]]:
        """The least that the costliest of `stages` can cost from layer `start` on; their ends."""
        if stages == 1:
            return sum(costs[start:]), (num_layers,)
        found = []
        for end in range(start + 1, num_layers - stages + 2):
            rest, ends = best(end, stages - 1)
            found.append((max(sum(costs[start:end]), rest), (end, *ends)))
        return min(found)

    ends = best(0, num_stages)[1]
    return [range(start, end) for start, end in zip((0, *ends), ends, strict=False)]
