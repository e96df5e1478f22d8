"""A tiny GPT of experts that learns: what each expert has to do meanwhile, and what evens it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from byhand.expert_parallel.layer import ExpertParallelMLP, LocalExperts, MixtureOfExperts
from byhand.expert_parallel.placement import Placement, imbalance, relabelled, replicated
from byhand.expert_parallel.router import Router
from byhand.expert_parallel.training import ExpertParallelTraining, random_experts, with_mixtures
from byhand.model.gpt import GPT, next_token_loss
from byhand.model.mlp import MLP
from byhand.model.optimizers import AdamW
from byhand.model.training import train_alone
from byhand.runtime import launch

LEARNING_RATE = 1e-2
Batches = list[tuple[Tensor, Tensor]]  # of model.text


def model_of(
    weights: GPT, num_experts: int, top_k: int, balance: float = 0.0, spread: bool = True
) -> MLP:
    """The GPT with mixtures of experts: spread over all ranks, or whole on one device."""

    def mixture(block: int) -> MixtureOfExperts:
        """A router and experts with weights of their own, in each block."""
        features, dtype = weights.table.shape[1], weights.table.dtype
        gate, experts = random_experts(num_experts, features, 2 * features, block + 1, dtype)
        router = Router(gate, top_k, balance=balance)
        if spread:
            return ExpertParallelMLP(router, experts)
        return MixtureOfExperts(router, LocalExperts(experts))

    return with_mixtures(weights, mixture)


def train_alone_too(weights: GPT, batches: Batches, num_experts: int, top_k: int) -> list[float]:
    """The losses on one device, without any balancing."""
    model = model_of(weights, num_experts, top_k, spread=False)
    return train_alone(model, AdamW(model.parameters(), LEARNING_RATE), batches, next_token_loss)


def train(
    weights: GPT,
    batches: Batches,
    world_size: int,
    num_experts: int,
    top_k: int,
    balance: float = 0.0,
    rate: float = 0.0,
    every: int = 0,
) -> tuple[list[float], list[list[int]], list[float]]:
    """Of every step: its loss, the rows of the last block's experts, how uneven its ranks were.

    balance: of the loss. rate: of the bias. every: after so many steps experts are placed anew, by
    the load since the last time, with one spare place on each rank for a copy.
    """

    def on_rank(rank: int, world_size: int) -> tuple[list[float], list, list[float]]:
        """This rank's shares of the losses; loads and unevenness, equal on all ranks."""
        training = ExpertParallelTraining(
            model_of(weights, num_experts, top_k, balance), LEARNING_RATE
        )
        mixtures: list[Any] = [layer.layers[1] for layer in training.model.layers[2:-2:2]]
        routers = [mixture.router for mixture in mixtures]
        losses, loads, uneven = [], [], []
        seen: list[Any] = [0] * len(routers)
        for number, (x, targets) in enumerate(batches, 1):
            losses.append(float(training.step(x, targets)))
            found = [router.take_load() for router in routers]
            seen = [before + load for before, load in zip(seen, found, strict=True)]
            loads.append(found[-1].tolist())
            uneven.append(imbalance(training.experts[-1].placement, loads[-1]))
            for router, load in zip(routers, found, strict=True):
                router.move_bias(load, rate)
            if every and number % every == 0:
                pairs = zip(training.experts, seen, strict=True)
                training.place([better(e.placement, load.tolist()) for e, load in pairs])
                seen = [0] * len(routers)
        return losses, loads, uneven

    run = launch(on_rank, world_size, deadline=200)
    losses = [sum(shares) for shares in zip(*(result[0] for result in run.results), strict=True)]
    return losses, *run.results[0][1:]


def better(placement: Placement, loads: Sequence[float]) -> list[list[int]]:
    """An even placement with one spare place on each rank, that moves few experts."""
    num_ranks = len(placement)
    num_slots = min(len(loads) + num_ranks, len(loads) * num_ranks)
    return relabelled(placement, replicated(loads, num_ranks, num_slots))
