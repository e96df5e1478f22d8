"""Which ranks share a host, and what a step sends from host to host. Pure.

Host k holds the ranks k·n to (k+1)·n - 1, for n ranks per host, as launchers number them. Whether
a group stays inside a host depends on the order of the axes alone; how much that costs depends on
what each group sends. Who sends to whom within a group:

    ring         tp, cp, dp, ...    all of a rank's bytes to the next, the last one's to the first
    chain        pp                 to the next stage, and as many bytes from it back
    all-to-all   ep                 the same share to every other rank

Volumes: Narayanan et al. 2021 (arXiv:2104.04473), section 3; ring attention: Liu et al. 2023.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from byhand.communication_cost.model import bus_factor
from byhand.costs.counting import sent as sent_in_a_step
from byhand.costs.layout import Layout
from byhand.costs.model import Model, Part
from byhand.rank_groups.grid import AXES, RankGrid


def stays_inside(groups: np.ndarray, ranks_per_host: int) -> np.ndarray:
    """For each of the groups [n, ranks in each]: are all its ranks on one host?"""
    hosts = groups // ranks_per_host
    return (hosts == hosts[:, :1]).all(axis=1)


def bytes_leaving(
    grid: RankGrid, ranks_per_host: int, sent: Mapping[str, float]
) -> dict[str, np.ndarray]:
    """By group name: the bytes that each host sends to other hosts in a step, [hosts].

    sent: by group name, the bytes that one rank sends in a step; for "pp" those that a stage sends
    to the next one.

    Raises:
        ValueError: the ranks do not fill whole hosts.
    """
    if ranks_per_host < 1 or grid.world_size % ranks_per_host:
        raise ValueError(
            f"{grid.world_size} ranks do not fill hosts of {ranks_per_host}: the world size must "
            "be a multiple of the ranks per host"
        )
    leaving = {}
    for name, num_bytes in sent.items():
        edges, share = _edges(grid.groups(name), name)
        hosts = edges // ranks_per_host
        crossing = hosts[hosts[:, 0] != hosts[:, 1], 0]
        num_hosts = grid.world_size // ranks_per_host
        leaving[name] = np.bincount(crossing, minlength=num_hosts) * (num_bytes * share)
    return leaving


def busiest_host(grid: RankGrid, ranks_per_host: int, sent: Mapping[str, float]) -> float:
    """The bytes that leave the host which sends most to others."""
    return float(np.max(sum(bytes_leaving(grid, ranks_per_host, sent).values())))


def between_hosts(model: Model, layout: Layout, num_sequences: int, ranks_per_host: int) -> float:
    """The bytes that all hosts together send to others in a step, as byhand.costs counts them.

    Its counted twin is `run.ledger.bytes_between_hosts(ranks_per_host)`.

    Raises:
        ValueError: sequences or half blocks that the layout cannot share out.
    """
    grid, found = layout.grid, 0.0
    for pipeline in grid.groups("pp").tolist():
        for stage, rank in enumerate(pipeline):
            for name, ops in sent_in_a_step(model, layout, num_sequences, stage).items():
                group = grid.groups_of(rank)[name].tolist()
                shares = _shares(group, rank, name, layout.chunks)
                leaves = (to // ranks_per_host != rank // ranks_per_host for to in shares)
                found += sum(ops.values()) * sum(itertools.compress(shares.values(), leaves))
    return found


def _shares(group: list[int], rank: int, name: str, chunks: int) -> dict[int, float]:
    """Who gets which share of what a rank sends in its group of that name."""
    if name != "pp":
        edges, share = _edges(np.array([group]), name)
        return {to: share for sender, to in edges.tolist() if sender == rank}
    place, n = group.index(rank), len(group)
    after, before = group[(place + 1) % n], group[place - 1]
    forward, backward = chunks - (place == n - 1), chunks - (place == 0)
    there, back = (count / (forward + backward) for count in (forward, backward))
    return {after: there + back} if after == before else {after: there, before: back}


def orders(grid: RankGrid) -> list[RankGrid]:
    """The same degrees in every order that is allowed; axes of degree 1 come last."""
    sizes = {**grid.expert_sizes, **grid.dense_sizes}
    sizes["dp"] = max(grid.dp, grid.expert_dp)
    long = [axis for axis in AXES if sizes[axis] > 1]
    short = [axis for axis in AXES if axis not in long]
    found = []
    for chosen in itertools.permutations(long):
        order = "-".join([*chosen, *short])
        try:
            degrees = (grid.tp, grid.cp, grid.ep, grid.pp, grid.expert_tp)
            found.append(RankGrid(grid.world_size, *degrees, order))
        except ValueError:
            continue
    return found


def transformer_bytes(
    grid: RankGrid,
    num_layers: int,
    hidden: int,
    sequence: int,
    micro_batch: int,
    num_micro_batches: int,
    bytes_per_element: int = 2,
    scatter_gather: bool = False,
) -> dict[str, float]:
    """What one rank sends in a training step of a dense transformer, by group name.

    Counted are a layer's four tensor-parallel all-reduces, the keys and values that travel round
    the context-parallel ring (three times: backward needs them again, with their gradients), the
    gradients of 12·hidden² weights a layer, and the activations between stages. Left out are
    embeddings, recomputation, and what several chunks per stage send more often.

    scatter_gather: as in section 4.1 of the paper, each rank of a tp group sends 1/tp of what goes
    to the next stage (or back), where the group gathers it.
    """
    layers = num_layers / grid.pp
    stage = Part(
        "a stage's layers",
        split=12 * hidden**2 * layers,
        enters=2 * layers,
        leaves=2 * layers,
        keys=hidden * layers,
    )
    model = Model((stage,), hidden, sequence, bytes_per_element)
    one_stage = Layout(grid.dp, grid.tp, cp=grid.cp, rows=micro_batch)
    ops = sent_in_a_step(model, one_stage, grid.dp * micro_batch * num_micro_batches)
    found = {name: sum(ops.get(name, {}).values()) for name in ("tp", "cp", "dp-cp")}
    activation = micro_batch * sequence * hidden / grid.cp * bytes_per_element
    between = num_micro_batches * activation if grid.pp > 1 else 0.0
    if scatter_gather:  # forward and backward: what comes as shares is gathered
        found["tp"] += 2 * bus_factor("all_gather", grid.tp) * between
        between /= grid.tp
    return found | {"pp": between}


def _edges(groups: np.ndarray, name: str) -> tuple[np.ndarray, float]:
    """Who sends to whom [edges, 2], and which share of a rank's bytes goes along each edge."""
    size = groups.shape[1]
    if size == 1:
        return np.empty((0, 2), dtype=groups.dtype), 1.0
    if name == "pp":
        there = np.stack([groups[:, :-1], groups[:, 1:]], axis=-1).reshape(-1, 2)
        return np.concatenate([there, there[:, ::-1]]), 1.0
    if name == "ep":
        distances, share = range(1, size), 1 / (size - 1)
    else:
        distances, share = range(1, 2), 1.0
    rings = [np.stack([groups, np.roll(groups, -d, axis=1)], axis=-1) for d in distances]
    return np.concatenate([ring.reshape(-1, 2) for ring in rings]), share
