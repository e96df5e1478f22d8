"""Lists of ranks become process groups: the one place where they do.

    groups = groups_for_this_rank(rank_groups(8, tp=2, pp=2), names=["tp", "dp", "pp"])
    dist.all_reduce(gradient, group=groups["dp"])

Creating a group is itself collective: every rank of the world must create every group, also those
it is not in, in the same order, or some wait for ever. `device_mesh` is torch's own way to the
same groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from byhand.rank_groups.grid import RankGrid


def groups_for_this_rank(
    groups: Mapping[str, Sequence[Sequence[int]]], names: Iterable[str] | None = None
) -> dict[str, dist.ProcessGroup]:
    """Create process groups; of each name, the one that this rank is in.

    groups: lists of ranks by name, as `rank_groups` gives them, the same on every rank.
    names: which of them to create, in this order; None creates all.
    Equal lists of ranks share one process group. A name whose groups all lack this rank, such as
    "embedding" on a middle stage, is left out.

    Raises:
        ValueError: a name that `groups` lacks, or ranks outside the world; on every rank alike.
    """
    names = list(groups) if names is None else list(names)
    _check(groups, names)
    made: dict[tuple[int, ...], dist.ProcessGroup] = {}
    mine = {}
    for name in names:
        for ranks in groups[name]:
            members = tuple(ranks)
            if members not in made:
                made[members] = dist.new_group(list(members))
            if dist.get_rank() in members:
                mine[name] = made[members]
    return mine


def device_mesh(grid: RankGrid, layers: str = "dense", device_type: str = "cpu") -> DeviceMesh:
    """The mesh of the grid's "dense" or "expert" layers as torch's, one group for each axis.

    `device_mesh(grid)["tp"].get_group()` has the ranks of "tp", and so on. torch counts along the
    last dimension first, so the dimensions are the order string's axes backwards. Collective.

    Raises:
        ValueError: the grid is not of this world's size, or `layers` is neither word.
    """
    if layers not in ("dense", "expert"):
        raise ValueError(f'layers is {layers!r}: choose "dense" or "expert"')
    if grid.world_size != dist.get_world_size():
        raise ValueError(
            f"the grid has {grid.world_size} ranks, this world {dist.get_world_size()}: "
            "a mesh holds each rank of its world once"
        )
    sizes = grid.dense_sizes if layers == "dense" else grid.expert_sizes
    shape = tuple(reversed(sizes.values()))
    return init_device_mesh(device_type, shape, mesh_dim_names=tuple(reversed(sizes)))


def _check(groups: Mapping[str, Sequence[Sequence[int]]], names: Sequence[str]) -> None:
    world_size = dist.get_world_size()
    for name in names:
        if name not in groups:
            raise ValueError(f"there is no group {name!r}; there are {', '.join(groups)}")
        highest = max(max(ranks) for ranks in groups[name])
        if highest >= world_size:
            raise ValueError(
                f"{name} groups have a rank {highest}, but this world has the ranks 0 to "
                f"{world_size - 1}: make the groups for {world_size} ranks"
            )
