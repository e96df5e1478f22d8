"""Rank groups hold against Megatron as published, against loops written anew, and as properties."""

from __future__ import annotations

import itertools
import math

import megatron_groups
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from byhand.rank_groups import NAMES, RankGrid, rank_groups
from byhand.rank_groups.mesh import Mesh

MORE_NAMES = (*NAMES, "expert-tp-ep", "expert-tp-ep-pp")
ALL_ORDERS = ["-".join(axes) for axes in itertools.permutations(("tp", "cp", "ep", "dp", "pp"))]
LITERATURE = [
    (16, 2, 4),
    (192, 8, 8),
    (128, 8, 8),
    (64, 8, 8),
    (160, 8, 4),
    (224, 8, 4),
    (96, 8, 4),
]

degrees = st.sampled_from([1, 1, 2, 2, 3, 4])
many = settings(max_examples=100)


@st.composite
def grids(draw):
    """Any grid of at most a few hundred ranks that is not refused."""
    tp, cp, ep, pp, times = (draw(degrees) for _ in range(5))
    expert_tp = draw(st.sampled_from([None, 1, 2]))
    dense, expert = tp * cp * pp, (expert_tp or tp) * ep * pp
    world_size = math.lcm(dense, expert) * times
    try:
        grid = RankGrid(world_size, tp, cp, ep, pp, expert_tp, draw(st.sampled_from(ALL_ORDERS)))
    except ValueError:
        assume(False)
    return grid


def by_loops(sizes: dict[str, int], axes: set[str]) -> list[list[int]]:
    """Groups over `axes`, one rank at a time: those that agree in all other coordinates."""
    groups: dict[tuple, list[int]] = {}
    slowest_first = [range(size) for size in reversed(sizes.values())]
    for rank, place in enumerate(itertools.product(*slowest_first)):
        coordinates = dict(zip(reversed(sizes), place, strict=True))
        others = tuple(c for axis, c in coordinates.items() if axis not in axes)
        groups.setdefault(others, []).append(rank)
    return [groups[others] for others in sorted(groups)]


def test_the_sixteen_ranks_of_megatrons_documentation():
    groups = rank_groups(16, tp=2, pp=4)
    assert groups["dp"] == [
        *([0, 2], [1, 3], [4, 6], [5, 7]),
        *([8, 10], [9, 11], [12, 14], [13, 15]),
    ]
    assert groups["tp"] == [[rank, rank + 1] for rank in range(0, 16, 2)]
    assert groups["pp"] == [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]
    assert groups["tp-pp"] == [[0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]]
    assert groups["embedding"] == [[0, 12], [1, 13], [2, 14], [3, 15]]
    assert groups["position_embedding"] == [[0], [1], [2], [3]]


@pytest.mark.parametrize(("world_size", "tp", "pp"), LITERATURE)
def test_the_cases_of_the_literature(world_size, tp, pp):
    groups, dp = rank_groups(world_size, tp=tp, pp=pp), world_size // (tp * pp)
    assert {name: len(groups[name]) for name in ("tp", "dp", "pp", "tp-pp")} == {
        "tp": pp * dp,
        "dp": tp * pp,
        "pp": tp * dp,
        "tp-pp": dp,
    }
    assert groups["tp"][1] == list(range(tp, 2 * tp))
    assert groups["dp"][0] == list(range(0, tp * dp, tp))
    assert groups["pp"][-1] == list(range(tp * dp - 1, world_size, tp * dp))
    sizes = {"tp": tp, "cp": 1, "dp": dp, "pp": pp}
    for name in NAMES[:9]:
        assert groups[name] == by_loops(sizes, set(name.split("-")))


@pytest.mark.parametrize(("world_size", "tp", "pp"), LITERATURE)
def test_the_cases_of_the_literature_as_published(world_size, tp, pp):
    published = megatron_groups.published_groups(world_size, tp=tp, pp=pp)
    grid = RankGrid(world_size, tp=tp, pp=pp)
    assert {name: grid.groups(name).tolist() for name in MORE_NAMES} == published


@given(
    *(degrees for _ in range(4)),
    st.sampled_from([None, 1, 2, 4]),
    st.sampled_from(ALL_ORDERS),
    st.integers(1, 48),
)
@many
def test_what_the_published_package_builds_or_refuses(tp, cp, ep, pp, expert_tp, order, times):
    degrees = (tp * pp * times, tp, cp, ep, pp, expert_tp, order)
    try:
        published = megatron_groups.published_groups(*degrees)
    except (RuntimeError, AssertionError):
        with pytest.raises(
            ValueError, match=r"ranks? cannot hold|pipeline groups|must then be equal"
        ):
            RankGrid(*degrees)
        return
    grid = RankGrid(*degrees)
    assert {name: grid.groups(name).tolist() for name in MORE_NAMES} == published


@pytest.mark.parametrize("order", ["tp-pp", "pp-dp", "dp-tp", "dp", "cp-dp-pp-tp"])
def test_an_order_that_lacks_axes_is_taken_or_refused_as_published(order):
    for tp, cp, pp in itertools.product((1, 2), repeat=3):
        try:
            published = megatron_groups.published_groups(8, tp=tp, cp=cp, pp=pp, order=order)
        except (RuntimeError, AssertionError):
            with pytest.raises(ValueError, match="order"):
                RankGrid(8, tp=tp, cp=cp, pp=pp, order=order)
        else:
            grid = RankGrid(8, tp=tp, cp=cp, pp=pp, order=order)
            assert {name: grid.groups(name).tolist() for name in MORE_NAMES} == published


@given(grids())
@many
def test_groups_are_what_plain_loops_find(grid):
    for name in NAMES[:9]:
        assert grid.groups(name).tolist() == by_loops(grid.dense_sizes, set(name.split("-")))
    for name, axis in (("ep", "ep"), ("expert-tp", "tp"), ("expert-dp", "dp")):
        assert grid.groups(name).tolist() == by_loops(grid.expert_sizes, {axis})


@given(grids())
@many
def test_the_groups_of_a_name_hold_every_rank_once(grid):
    for name in NAMES[:-2]:
        groups = grid.groups(name)
        assert np.array_equal(np.sort(groups, axis=None), np.arange(grid.world_size))
        assert (np.diff(groups, axis=1) > 0).all(), f"{name}: ranks of a group rise"
        assert (np.diff(groups[:, 0]) > 0).all(), f"{name}: first ranks rise"


@given(grids())
@many
def test_groups_of_two_kinds_share_one_rank_at_most(grid):
    for one, other in itertools.combinations(("tp", "cp", "dp", "pp"), 2):
        mine = {rank: tuple(group) for group in grid.groups(other).tolist() for rank in group}
        for group in grid.groups(one).tolist():
            assert len({mine[rank] for rank in group}) == len(group)


@given(grids())
@many
def test_dense_and_expert_layers_have_the_same_pipelines(grid):
    assert np.array_equal(grid.groups("pp"), grid.groups("expert-pp"))
    first_and_last = [sorted({group[0], group[-1]}) for group in grid.groups("pp").tolist()]
    assert grid.groups("embedding").tolist() == first_and_last
    assert grid.groups("position_embedding").tolist() == [g[:1] for g in first_and_last]


@given(grids(), st.data())
@many
def test_one_ranks_groups_are_those_of_all_that_have_it(grid, data):
    rank = data.draw(st.integers(0, grid.world_size - 1))
    found = {name: group.tolist() for name, group in grid.groups_of(rank).items()}
    groups = rank_groups(**{field: getattr(grid, field) for field in grid.__dataclass_fields__})
    mine = {name: [g for g in groups[name] if rank in g] for name in NAMES}
    assert {name: [group] for name, group in found.items()} == {n: g for n, g in mine.items() if g}


@given(grids(), st.data())
@many
def test_coordinates_lead_to_the_rank_and_back(grid, data):
    rank = data.draw(st.integers(0, grid.world_size - 1))
    for mesh in (grid.dense, grid.expert):
        coordinates = mesh.coordinates(rank)
        assert mesh.rank(**coordinates) == rank
        for axis, place in coordinates.items():
            assert mesh.group(rank, axis)[place] == rank


def test_a_mesh_is_sliced_by_name():
    mesh = RankGrid(16, tp=2, pp=4).dense
    assert mesh.rank(tp=1, dp=0, pp=3) == 13
    assert mesh.ranks(pp=3).ravel().tolist() == [12, 13, 14, 15]
    assert mesh.ranks(tp=0, dp=slice(1, 2), cp=0).tolist() == [[2], [6], [10], [14]]
    assert np.shares_memory(mesh.ranks(pp=3), mesh.array)
    assert repr(mesh) == "Mesh(tp 2 × cp 1 × dp 2 × pp 4)"


def test_the_groups_of_a_million_ranks_are_views_of_one_array():
    grid = RankGrid(2**20, tp=8, cp=2, ep=8, pp=16)
    for name in ("tp", "pp", "tp-cp", "tp-dp-cp"):
        assert np.shares_memory(grid.groups(name), grid.dense.array)
    for name in ("tp", "dp", "pp", "dp-cp"):
        assert np.shares_memory(grid.group(name, 77_777), grid.dense.array)
    assert grid.groups("tp").shape == (2**17, 8)


def test_nobody_can_write_into_the_ranks():
    with pytest.raises(ValueError, match="read-only"):
        RankGrid(8, tp=2).group("tp", 0)[0] = 5


def test_the_groups_are_told_by_every_name():
    groups = rank_groups(4, tp=2)
    assert list(groups) == list(NAMES)
    assert "tp" in groups
    assert "world" not in groups
    assert type(groups["tp"][0][0]) is int


@pytest.mark.parametrize(
    ("degrees", "sentence"),
    [
        ({"tp": 3, "pp": 4}, r"16 ranks cannot hold tp 3 × cp 1 × pp 4 = 12: .* multiple"),
        ({"tp": 2, "ep": 16}, r"16 ranks cannot hold expert_tp 2 × ep 16 × pp 1 = 32"),
        ({"expert_tp": 3}, r"16 ranks cannot hold expert_tp 3 × ep 1 × pp 1 = 3"),
        ({"tp": 0}, "tp is 0: it must be a whole number of at least 1"),
        ({"cp": 2.0}, "cp is 2.0: it must be a whole number"),
        ({"cp": 2, "order": "tp-dp-pp"}, "order 'tp-dp-pp' lacks cp, which is 2 for dense layers"),
        ({"ep": 4, "order": "tp-dp-pp"}, "lacks ep, which is 4 for expert layers"),
        ({"tp": 4, "cp": 4, "order": "tp-cp"}, "lacks dp, which is 4 for expert layers"),
        ({"order": "tp-dp-xp"}, "names 'xp'; the axes are tp, cp, ep, dp, pp"),
        ({"order": "tp-dp-tp-pp"}, "names tp 2 times, not once"),
        (
            {"cp": 2, "pp": 2, "order": "tp-cp-pp-ep-dp"},
            "does not end in pp, and dp is 4 for dense layers but 8 for expert layers",
        ),
        (
            {"cp": 2, "ep": 2, "pp": 2, "order": "cp-pp-ep-dp"},
            "next pipeline stage 2 ranks further for dense layers but 1 for expert layers",
        ),
    ],
)
def test_a_refusal_has_the_numbers_and_the_rule(degrees, sentence):
    with pytest.raises(ValueError, match=sentence):
        rank_groups(16, **degrees)


def test_a_degree_may_be_any_librarys_whole_number():
    assert rank_groups(np.int64(8), tp=np.int32(2), pp=2) == rank_groups(8, tp=2, pp=2)
    for number in (True, np.float64(2), np.True_):
        with pytest.raises(ValueError, match=r"tp is .* it must be a whole number of at least 1"):
            rank_groups(8, tp=number)


def test_a_mesh_refuses_what_it_does_not_have():
    mesh = Mesh({"tp": 2, "dp": 4})
    with pytest.raises(ValueError, match="there is no rank 8 among 8"):
        mesh.coordinates(8)
    with pytest.raises(ValueError, match="tp 2 lies outside 0 to 1"):
        mesh.rank(tp=2, dp=0)
    with pytest.raises(ValueError, match="which rank along dp"):
        mesh.rank(tp=1)
    with pytest.raises(ValueError, match="there is no axis 'pp'"):
        mesh.groups("pp")
