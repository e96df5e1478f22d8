"""Groups of a million ranks, cut from one array, beside a plain loop over ranks.

    python tests/benchmarks/rank_groups.py [repetitions]

The loop is what a first attempt looks like: each rank's coordinates, and from them the group that
it belongs to. Megatron's own generator, another loop, runs too where megatron-core is installed.
All give the same lists.
"""

from __future__ import annotations

import math
import statistics
import sys
import time

import pytest

from byhand.rank_groups import AXES, NAMES, RankGrid

WORLD_SIZE, DEGREES = 2**20, {"tp": 8, "cp": 2, "ep": 8, "pp": 16}
SHOWN = ("tp", "dp", "pp", "tp-pp", "expert-dp")


def by_loop(sizes: dict[str, int], axes: list[str]) -> list[list[int]]:
    """The groups over `axes` of a mesh of these sizes, the fastest axis first."""
    outside = [(axis, size) for axis, size in sizes.items() if axis not in axes]
    groups = {}
    for rank in range(math.prod(sizes.values())):
        coordinates, rest = {}, rank
        for axis, size in sizes.items():
            rest, coordinates[axis] = divmod(rest, size)
        number, stride = 0, 1
        for axis, size in outside:
            number, stride = number + coordinates[axis] * stride, stride * size
        groups.setdefault(number, []).append(rank)
    return [groups[number] for number in sorted(groups)]


def seconds(task, repetitions):
    """The median, and what the task gave."""
    found = []
    for _ in range(repetitions):
        start = time.perf_counter()
        result = task()
        found.append(time.perf_counter() - start)
    return statistics.median(found), result


def print_all_groups(repetitions):
    print(f"all groups of a name, {WORLD_SIZE:,} ranks, {DEGREES}; median of {repetitions}")
    print(f"{'name':10}{'groups':>9}{'array':>12}{'as lists':>12}{'plain loop':>12}", end="")
    print(f"{'Megatron':>12}{'loop over array':>17}")
    grid = RankGrid(WORLD_SIZE, **DEGREES)
    for name in SHOWN:
        expert, axes = name.startswith("expert"), name.removeprefix("expert-")
        sizes = grid.expert_sizes if expert else grid.dense_sizes
        array, _ = seconds(lambda n=name: RankGrid(WORLD_SIZE, **DEGREES).groups(n), repetitions)
        lists, found = seconds(lambda n=name: grid.groups(n).tolist(), repetitions)
        loop, looped = seconds(lambda s=sizes, a=axes: by_loop(s, a.split("-")), 1)
        assert found == looped
        row = "".join(f"{1e3 * s:9.1f} ms" for s in (array, lists, loop))
        print(f"{name:10}{len(found):9,}{row}{_megatron(sizes, axes, grid.order)}", end="")
        print(f"{loop / array:17.0f}", flush=True)


def print_one_rank(repetitions):
    grid = RankGrid(WORLD_SIZE, **DEGREES)
    grid.groups_of(0)  # makes the two meshes
    ranks = range(0, WORLD_SIZE, WORLD_SIZE // 100)
    print(f"\none rank's group among {WORLD_SIZE:,} ranks, median of {repetitions} times 100 ranks")
    for name in NAMES:
        taken, _ = seconds(lambda n=name: [grid.group(n, rank) for rank in ranks], repetitions)
        print(f"{name:20}{1e6 * taken / len(ranks):8.1f} µs")
    taken, _ = seconds(lambda: [grid.groups_of(rank) for rank in ranks], repetitions)
    print(f"{'all of them':20}{1e6 * taken / len(ranks):8.1f} µs")


def _megatron(sizes, axes, order):
    """How long Megatron's own generator takes, as text; "-" where it is not installed."""
    try:
        from megatron_groups import parallel_state

        state = parallel_state()
    except (ImportError, pytest.skip.Exception):
        return f"{'-':>12}"
    degrees = {axis: sizes.get(axis, 1) for axis in AXES}
    taken, _ = seconds(lambda: state.RankGenerator(**degrees, order=order).get_ranks(axes), 1)
    return f"{1e3 * taken:9.1f} ms"


def main() -> None:
    repetitions = int(sys.argv[1]) if sys.argv[1:] else 5
    print_all_groups(repetitions)
    print_one_rank(repetitions)


if __name__ == "__main__":
    main()
