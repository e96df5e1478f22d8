"""Who talks to whom: the groups of ranks that Megatron builds, from degrees and an order. Pure.

    rank_groups(16, tp=2, pp=4)["pp"]     [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], ...]
    RankGrid(16, tp=2, pp=4)              the same as numpy arrays, and one rank's groups

The order "tp-cp-ep-dp-pp" lays the ranks out: the leftmost axis varies fastest. There are two
meshes over the same ranks, and both have the same pipeline groups:

    dense layers     tp × cp × dp × pp                  dp = world / (tp · cp · pp)
    expert layers    expert_tp × ep × expert_dp × pp    expert_dp = world / (expert_tp · ep · pp)

Context-parallel ranks hold equal weights, so for expert layers they count as data-parallel ones.
Pure integers, no torch. Source: Megatron-LM, megatron/core/parallel_state.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import numpy as np

from byhand.rank_groups.mesh import Mesh
from byhand.words import counted

ORDER = "tp-cp-ep-dp-pp"
AXES = tuple(ORDER.split("-"))
NAMES = (
    *("tp", "cp", "dp", "dp-cp", "pp"),
    *("tp-pp", "tp-cp", "tp-dp", "tp-dp-cp"),
    *("ep", "expert-tp", "expert-dp"),
    *("embedding", "position_embedding"),
)


def rank_groups(
    world_size: int,
    tp: int = 1,
    cp: int = 1,
    ep: int = 1,
    pp: int = 1,
    expert_tp: int | None = None,
    order: str = ORDER,
) -> dict[str, list[list[int]]]:
    """Every group of ranks, as lists, by name.

    "tp-pp" is the model-parallel group: the ranks that together hold one copy of the dense layers.
    "embedding" has the first and last rank of each pipeline, "position_embedding" the first.

    Raises:
        ValueError: see `RankGrid`.

    >>> groups = rank_groups(8, tp=2, pp=2)
    >>> for axis in ("tp", "dp", "pp"):
    ...     print(axis, groups[axis])
    tp [[0, 1], [2, 3], [4, 5], [6, 7]]
    dp [[0, 2], [1, 3], [4, 6], [5, 7]]
    pp [[0, 4], [1, 5], [2, 6], [3, 7]]
    """
    grid = RankGrid(world_size, tp, cp, ep, pp, expert_tp, order)
    return {name: grid.groups(name).tolist() for name in NAMES}


@dataclass(frozen=True)
class RankGrid:
    """The degrees, the order, and the two meshes they span over the same ranks.

    expert_tp: tensor-parallel degree of expert layers; None: as of dense ones.
    order: the axes, the fastest first; one whose degree is 1 may be left out.

    Raises:
        ValueError: the degrees do not divide the world; the order names an axis that does not
            exist, names one twice, or lacks one; dense and expert layers would be cut into
            different pipelines.

    >>> grid = RankGrid(16, tp=2, pp=4)
    >>> grid.dp, grid.group("dp", rank=5).tolist()
    (2, [5, 7])
    >>> RankGrid(8, tp=2, pp=3)
    Traceback (most recent call last):
        ...
    ValueError: 8 ranks cannot hold tp 2 × cp 1 × pp 3 = 6: the world size must be a
        multiple of what one copy of the dense layers takes
    """

    world_size: int
    tp: int = 1
    cp: int = 1
    ep: int = 1
    pp: int = 1
    expert_tp: int | None = None
    order: str = ORDER

    def __post_init__(self) -> None:
        _check_degrees(self)
        _check_order(self)
        _check_pipelines(self)

    @property
    def dp(self) -> int:
        """How many copies of the dense layers there are, not counting context-parallel ones."""
        return self.world_size // (self.tp * self.cp * self.pp)

    @property
    def expert_dp(self) -> int:
        """How many copies of each expert there are."""
        expert_tp = self.tp if self.expert_tp is None else self.expert_tp
        return self.world_size // (expert_tp * self.ep * self.pp)

    @property
    def dense_sizes(self) -> dict[str, int]:
        """The dense layers' axes and degrees, the fastest first."""
        return self._ordered({"tp": self.tp, "cp": self.cp, "dp": self.dp, "pp": self.pp})

    @property
    def expert_sizes(self) -> dict[str, int]:
        """The expert layers' axes and degrees, the fastest first."""
        expert_tp = self.tp if self.expert_tp is None else self.expert_tp
        return self._ordered({"tp": expert_tp, "ep": self.ep, "dp": self.expert_dp, "pp": self.pp})

    def _ordered(self, sizes: dict[str, int]) -> dict[str, int]:
        # An axis that the order leaves out has degree 1: its place changes nothing.
        order = [*self.order.split("-"), *AXES]
        return {axis: sizes[axis] for axis in dict.fromkeys(order) if axis in sizes}

    @cached_property
    def dense(self) -> Mesh:
        """The mesh that dense layers see."""
        return Mesh(self.dense_sizes)

    @cached_property
    def expert(self) -> Mesh:
        """The mesh that expert layers see."""
        return Mesh(self.expert_sizes)

    def groups(self, name: str) -> np.ndarray:
        """Every group of that name, [number of groups, ranks in each].

        name: one of NAMES, or any axes joined by "-", those of expert layers after "expert-".
        """
        if name in ("embedding", "position_embedding"):
            return _ends(self.groups("pp"), name)
        mesh, axes = self._mesh(name)
        return mesh.groups(*axes)

    def group(self, name: str, rank: int) -> np.ndarray | None:
        """The group of that name that `rank` is in; None when it is in none."""
        if name in ("embedding", "position_embedding"):
            ends = _ends(self.dense.group(rank, "pp")[None], name)[0]
            return ends if rank in ends else None
        mesh, axes = self._mesh(name)
        return mesh.group(rank, *axes)

    def groups_of(self, rank: int) -> dict[str, np.ndarray]:
        """All groups that `rank` is in, by name; what a middle stage is not in is left out."""
        found = {name: self.group(name, rank) for name in NAMES}
        return {name: group for name, group in found.items() if group is not None}

    def _mesh(self, name: str) -> tuple[Mesh, list[str]]:
        axes = name.split("-")
        if axes[0] == "expert":
            return self.expert, axes[1:]
        return (self.expert if "ep" in axes else self.dense), axes


def _ends(pipelines: np.ndarray, name: str) -> np.ndarray:
    """The first and last rank of each pipeline [n, pp] (embedding), or the first alone."""
    both = name == "embedding" and pipelines.shape[1] > 1
    return pipelines[:, [0, -1]] if both else pipelines[:, :1]


def _check_degrees(grid: RankGrid) -> None:
    degrees = {name: getattr(grid, name) for name in ("world_size", "tp", "cp", "ep", "pp")}
    expert_tp = grid.tp if grid.expert_tp is None else grid.expert_tp
    for name, degree in {**degrees, "expert_tp": expert_tp}.items():
        if not isinstance(degree, Integral) or isinstance(degree, bool) or degree < 1:
            raise ValueError(f"{name} is {degree!r}: it must be a whole number of at least 1")
    for layers, factors in (
        ("dense", {"tp": grid.tp, "cp": grid.cp, "pp": grid.pp}),
        ("expert", {"expert_tp": expert_tp, "ep": grid.ep, "pp": grid.pp}),
    ):
        copy = int(np.prod(list(factors.values())))
        if grid.world_size % copy:
            product = " × ".join(f"{name} {degree}" for name, degree in factors.items())
            raise ValueError(
                f"{counted(grid.world_size, 'rank')} cannot hold {product} = {copy}: the world size"
                f" must be a multiple of what one copy of the {layers} layers takes"
            )


def _check_order(grid: RankGrid) -> None:
    named = grid.order.split("-")
    for axis in named:
        if axis not in AXES:
            raise ValueError(f"order {grid.order!r} names {axis!r}; the axes are {', '.join(AXES)}")
        if named.count(axis) > 1:
            raise ValueError(
                f"order {grid.order!r} names {axis} {named.count(axis)} times, not once"
            )
    for layers, sizes in (("dense", grid.dense_sizes), ("expert", grid.expert_sizes)):
        for axis, size in sizes.items():
            if size > 1 and axis not in named:
                raise ValueError(
                    f"order {grid.order!r} lacks {axis}, which is {size} for {layers} layers: "
                    "every axis of more than 1 rank needs its place"
                )


def _check_pipelines(grid: RankGrid) -> None:
    """Dense and expert layers of a stage are on the same ranks; Megatron asks a little more."""
    if grid.pp == 1 or grid.order.endswith("pp"):
        return
    if grid.dp != grid.expert_dp:
        raise ValueError(
            f"order {grid.order!r} does not end in pp, and dp is {grid.dp} for dense layers but "
            f"{grid.expert_dp} for expert layers: the two must then be equal"
        )
    dense, expert = (mesh.group(0, "pp")[1] for mesh in (grid.dense, grid.expert))
    if dense != expert:
        raise ValueError(
            f"order {grid.order!r} puts the next pipeline stage {dense} ranks further for dense "
            f"layers but {expert} for expert layers: both need the same pipeline groups"
        )
