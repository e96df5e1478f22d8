"""Experts on real ranks, for lecture 14: who waits for whom, and what crosses a link.

    learning   a tiny GPT of experts, and what each has to do while it learns
    pictures   rows that travel, loads by rank, a step's timeline; loads to drag

For its times, experts *sleep* as long as a slow device would compute their rows: see
byhand.tools.asleep. Rows, messages and weights are real.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.expert_parallel.hosts import HostExperts
from byhand.expert_parallel.layer import Experts
from byhand.expert_parallel.migration import move
from byhand.expert_parallel.placement import Placement
from byhand.expert_parallel.training import random_experts
from byhand.model.layer import Layer
from byhand.model.mlp import MLP
from byhand.model.optimizers import AdamW
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.runtime import PerRank, Run, VirtualNetwork, launch, why_no_network
from byhand.tools.asleep import LINK as LINK

STEPS, TRIES = 4, 3  # of `cross`, of `watch`
SIZES = 64, 512  # features and hidden features of the sleeping experts


def popular(num_tokens: int, num_experts: int, top_k: int, skew: float) -> Tensor:
    """Choices [T, k] as a router makes them when expert e is e^skew times rarer than expert 0.

    The experts' numbers are shuffled. skew 0: all are equally popular.
    """
    generator = torch.Generator().manual_seed(0)
    noise = -torch.log(-torch.log(torch.rand(num_tokens, num_experts, generator=generator)))
    scores = noise - skew * torch.arange(1, num_experts + 1).log()
    names = torch.randperm(num_experts, generator=torch.Generator().manual_seed(1))
    return names[scores.topk(top_k, dim=1).indices]


def loads_of(chosen: Tensor, num_experts: int) -> list[int]:
    """The rows of each expert."""
    return torch.bincount(chosen.flatten(), minlength=num_experts).tolist()


class Sleepy(MLP):
    """An expert with weights that computes nothing, in the time of its rows: y = x."""

    seconds = 0.0  # a row, forward; backward takes twice that

    def forward(self, x: Tensor) -> tuple[Tensor, list]:
        """x [R, D] -> x."""
        time.sleep(len(x) * self.seconds)
        return x, []

    def backward_input(self, grad_y: Tensor, saved: list) -> tuple[Tensor, list]:
        """grad_y [R, D] -> grad_y, in the time of a whole backward."""
        time.sleep(2 * len(grad_y) * self.seconds)
        return grad_y, []

    def backward_weight(self, kept: list) -> None:
        """No time is left for it."""


class SleepyExperts(Experts):
    """This rank's experts, which sleep."""

    def build(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> Layer:
        """An expert of full weights."""
        return Sleepy(MLP.from_weights(pairs).layers)


def step(experts: Experts | HostExperts, x: Tensor, chosen: Tensor) -> float:
    """Forward and backward of the layer, all ranks beginning together; its seconds here."""
    dist.barrier()
    begun = time.perf_counter()
    weights = torch.full(chosen.shape, 1 / chosen.shape[1])
    y, saved = experts.forward(x, weights, chosen)
    _, kept = experts.backward_input(y, saved)
    experts.backward_weight(kept)
    return time.perf_counter() - begun


@dataclass(frozen=True)
class Watched:
    """Seconds by the slowest rank, of the tries that other programs disturbed least.

    awake: a step whose experts cost nothing. steps: under each placement; drawn: the number of
    its barrier in the run. moves: from each placement to the next.
    """

    run: Run
    awake: float
    steps: list[float]
    drawn: list[int]
    moves: list[float]


def watch(
    chosen: Tensor, placements: Sequence[Placement], seconds: float, link: float | None = None
) -> Watched:
    """TRIES steps under each placement, on fresh ranks; the experts' weights move in between.

    chosen: of all ranks' tokens, dealt out in order. seconds: a row takes, forward. link: bytes a
    second between ranks, each a host by itself, where a network can be laid.
    """
    num_ranks = len(placements[0])

    def on_rank(rank: int, world_size: int, mine: Tensor) -> list[float]:
        """Seconds here: of steps awake, then of each placement's move and steps."""
        _, weights = random_experts(int(chosen.max()) + 1, *SIZES)
        experts = SleepyExperts(weights, placement=placements[0])
        optimizer, x = AdamW(experts.parameters()), torch.ones(len(mine), SIZES[0])
        step(experts, x, mine)  # ranks connect
        took = [step(experts, x, mine) for _ in range(TRIES)]
        Sleepy.seconds = seconds
        for placement in placements:
            dist.barrier()
            begun = time.perf_counter()
            move(experts, placement, optimizer)  # the first one moves nothing
            took.append(time.perf_counter() - begun)
            took += [step(experts, x, mine) for _ in range(TRIES)]
        return took

    network = VirtualNetwork(num_ranks, 1, link) if link and not why_no_network() else None
    shares = PerRank(list(chosen.tensor_split(num_ranks)))
    run = launch(on_rank, num_ranks, (shares,), network=network)
    took = [max(tries) for tries in zip(*run.results, strict=True)]
    moved = range(TRIES, len(took), TRIES + 1)
    best = [min(range(at + 1, at + 1 + TRIES), key=took.__getitem__) for at in moved]
    moves = [took[at] for at in moved[1:]]
    steps = [took[number] for number in best]
    return Watched(run, min(took[:TRIES]), steps, [number + 1 for number in best], moves)


def cross(
    two_levels: bool, chosen: Tensor, num_experts: int, features: int, network: VirtualNetwork
) -> tuple[Run, float]:
    """STEPS steps of experts on several hosts; the seconds of the fastest, by its slowest rank.

    chosen: of all ranks' tokens, dealt out in order.
    """
    per_host = network.ranks_per_host
    hosts = [list(range(h * per_host, (h + 1) * per_host)) for h in range(network.hosts)]
    names = {"within": hosts, "across": [list(ranks) for ranks in zip(*hosts, strict=True)]}

    def on_rank(rank: int, world_size: int, mine: Tensor) -> list[float]:
        """Seconds of each step here."""
        _, weights = random_experts(num_experts, features, 8)
        groups: dict[str, Any] = groups_for_this_rank(names) if two_levels else {}
        experts = HostExperts(weights, **groups) if two_levels else Experts(weights)
        x = torch.ones(len(mine), features)
        return [step(experts, x, mine) for _ in range(STEPS)]

    shares = PerRank(list(chosen.tensor_split(network.world_size)))
    run = launch(on_rank, network.world_size, (shares,), network=network)
    return run, min(max(took) for took in zip(*run.results, strict=True))


def crossing_bytes(chosen: Tensor, num_experts: int, features: int) -> tuple[int, int]:
    """(flat, two levels): what the first of two hosts sends the other in a step, float32.

    Not counted: how many rows come, some bytes a rank.
    """
    homes = torch.arange(len(chosen)) * 2 // len(chosen)  # of the tokens
    away = chosen * 2 // num_experts != homes[:, None]
    rows = [int(away[homes == host].sum()) for host in (0, 1)]
    tokens = [int(away[homes == host].any(dim=1).sum()) for host in (0, 1)]
    both_ways = 4 * (2 * features + chosen.shape[1])  # x, weights, grad_y there; or all that back
    return 2 * 4 * features * sum(rows), both_ways * sum(tokens) + 8 * chosen.shape[1] * tokens[0]
