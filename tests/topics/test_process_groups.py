"""Rank groups as process groups on real ranks, and the same as a DeviceMesh's."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from byhand import RankError, launch
from byhand.rank_groups import NAMES, RankGrid, rank_groups
from byhand.rank_groups.lab import plainly
from byhand.rank_groups.process_groups import device_mesh, groups_for_this_rank

DEGREES = {"tp": 2, "ep": 2, "pp": 2}
ORDERS = ["-".join(axes) for axes in itertools.permutations(("tp", "cp", "dp", "pp"))]


def members(rank, world_size, degrees, names=None):
    groups = groups_for_this_rank(rank_groups(world_size, **degrees), names)
    return {name: dist.get_process_group_ranks(group) for name, group in groups.items()}


def expected(world_size, degrees, rank):
    grid = RankGrid(world_size, **degrees)
    return {name: group.tolist() for name, group in grid.groups_of(rank).items()}


@pytest.mark.parametrize(
    ("world_size", "degrees"),
    [(8, DEGREES), (6, {"tp": 3, "pp": 2}), (4, {"pp": 4}), (4, {"cp": 2, "order": "cp-tp-dp-pp"})],
)
def test_every_rank_gets_the_groups_it_is_in(world_size, degrees):
    run = launch(members, world_size, (degrees,))
    assert run.results == [expected(world_size, degrees, rank) for rank in range(world_size)]


def test_only_the_groups_asked_for_are_made():
    run = launch(members, 4, ({"tp": 2, "pp": 2}, ["pp", "tp"]))
    assert run.results[3] == {"pp": [1, 3], "tp": [2, 3]}
    assert list(run.results[3]) == ["pp", "tp"]


def sum_in_each_group(rank, world_size, degrees):
    groups = groups_for_this_rank(rank_groups(world_size, **degrees))
    sums = {}
    for name, group in groups.items():
        total = torch.tensor([float(rank)])
        dist.all_reduce(total, group=group)
        sums[name] = total.item()
    return sums


def test_the_groups_add_up_over_their_own_ranks():
    run = launch(sum_in_each_group, 8, (DEGREES,))
    for rank in range(8):
        groups = expected(8, DEGREES, rank)
        assert run.results[rank] == {name: sum(group) for name, group in groups.items()}
    for event in run.ledger.events:
        assert list(event.group) in expected(8, DEGREES, event.rank).values()


def identities(rank, world_size):
    groups = groups_for_this_rank(rank_groups(world_size, tp=2))
    return groups["dp"] is groups["dp-cp"], groups["tp"] is groups["tp-pp"]


def test_equal_lists_share_one_process_group():
    assert launch(identities, 4).results == [(True, True)] * 4


def test_groups_for_another_world_are_refused_on_every_rank():
    with pytest.raises(RankError, match=r"a rank 7, but this world has the ranks 0 to 3"):
        launch(lambda rank, world_size: groups_for_this_rank(rank_groups(8, tp=2)), 4)
    with pytest.raises(RankError, match="there is no group 'edp'; there are tp, cp"):
        launch(members, 2, ({}, ["edp"]))
    with pytest.raises(RankError, match="the grid has 8 ranks, this world 2"):
        launch(lambda rank, world_size: device_mesh(RankGrid(8)), 2)


def mesh_members(rank, world_size, degrees):
    grid = RankGrid(world_size, **degrees)
    dense, expert = device_mesh(grid), device_mesh(grid, "expert")
    found = {axis: dense[axis].get_group() for axis in grid.dense_sizes}
    found |= {"ep": expert["ep"].get_group(), "expert-dp": expert["dp"].get_group()}
    coordinates = dict(zip(dense.mesh_dim_names, dense.get_coordinate(), strict=True))
    return {n: dist.get_process_group_ranks(g) for n, g in found.items()}, coordinates


@pytest.mark.parametrize("order", ["tp-cp-ep-dp-pp", "ep-dp-tp-pp"])
def test_torchs_mesh_has_the_same_groups_and_coordinates(order):
    degrees = {**DEGREES, "order": order}
    run = launch(mesh_members, 8, (degrees,))
    for rank, (found, coordinates) in enumerate(run.results):
        mine = expected(8, degrees, rank)
        assert found == {name: mine[name] for name in found}
        assert coordinates == RankGrid(8, **degrees).dense.coordinates(rank)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_of_a_mesh_gives_every_rank_the_same_groups(order):
    # cp 2 is allowed only where pp comes last.
    grid = RankGrid(24, tp=2, cp=1 + order.endswith("pp"), pp=2, order=order)
    for rank in range(0, 24, 5):
        found = mesh_groups(grid, rank)
        assert found == {name: grid.group(name, rank).tolist() for name in found}


def mesh_groups(grid, rank):
    """This rank's groups of a DeviceMesh, in a world that one process makes believe."""
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=grid.world_size)
    try:
        sizes = grid.dense_sizes
        mesh = init_device_mesh(
            "cpu", tuple(reversed(sizes.values())), mesh_dim_names=tuple(reversed(sizes))
        )
        found = {axis: mesh[axis].mesh.tolist() for axis in sizes}
        for name in NAMES[:9]:
            axes = tuple(axis for axis in mesh.mesh_dim_names if axis in name.split("-"))
            found[name] = mesh[axes].mesh.flatten().tolist()
        return found
    finally:
        dist.destroy_process_group()


def pair_of(rank, world_size):
    (mine,) = (ranks for ranks in rank_groups(world_size, tp=2)["tp"] if rank in ranks)
    total = torch.tensor(10**rank)
    dist.all_reduce(total, group=dist.new_group(mine, use_local_synchronization=True))
    return int(total)


def first_in_pairs_then_the_ends(rank, world_size):
    assert pair_of(rank, world_size) == (11 if rank < 2 else 1100)
    if rank in (0, world_size - 1):
        dist.new_group([0, world_size - 1], use_local_synchronization=True)
    return pair_of(rank, world_size)


def test_plain_processes_meet_in_groups_of_their_own_until_they_made_unequal_numbers_of_them():
    said = plainly(first_in_pairs_then_the_ends, 4, pair_of, seconds=5)
    assert said == [f"rank {rank}: waits" for rank in range(4)]
