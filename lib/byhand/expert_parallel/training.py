"""A tiny GPT whose MLPs are mixtures of experts, trained with its experts spread over ranks.

For all but the experts, ranks are data-parallel replicas: each has its own sequences, and the
gradients of attention, norms, embedding and routers are summed over all ranks. Those of the
experts are complete without, for the tokens of all ranks came to them.

Simplified: nothing of the sum hides behind backward; gradients are not clipped.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from byhand.data_parallel import all_reduce_gradients_flat, shard
from byhand.expert_parallel.layer import Weights, dense, experts_in
from byhand.expert_parallel.migration import move, sum_copies
from byhand.expert_parallel.placement import Placement
from byhand.model.gpt import GPT, Parts, gpt_layers, next_token_loss
from byhand.model.layer import Layer
from byhand.model.mlp import MLP, random_weights
from byhand.model.optimizers import AdamW


def with_mixtures(weights: GPT, mixture: Callable[[int], Layer]) -> MLP:
    """The GPT, with mixture(b) in place of the MLP of block b."""
    mixtures = map(mixture, range(len(weights.blocks)))  # asked for block by block
    return MLP(gpt_layers(weights, parts=Parts(mlp=lambda pairs, activation: next(mixtures))))


def random_experts(
    num_experts: int,
    num_features: int,
    hidden: int,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Weights]:
    """A router's weight [E, D], and E experts' weights, D to `hidden` to D; equal for one seed."""
    ((router, _),) = random_weights([num_features, num_experts], 1000 * seed, dtype)
    sizes = [num_features, hidden, num_features]
    seeds = range(1000 * seed + 1, 1000 * seed + 1 + num_experts)
    return router, [random_weights(sizes, each, dtype) for each in seeds]


class ExpertParallelTraining:
    """Steps of AdamW on a model of which this rank holds some experts, and all else."""

    def __init__(self, model: Layer, lr: float = 1e-3):
        """Every layer of experts has an optimizer of its own: its state moves with them."""
        self.model, self.experts = model, experts_in(model)
        parameters, self.dense_gradients = dense(model)
        self.optimizer = AdamW(parameters, lr)
        self.expert_optimizers = [AdamW(experts.parameters(), lr) for experts in self.experts]

    def step(self, x: Tensor, targets: Tensor) -> Tensor:
        """Train on a global batch of tokens [B, S], which every rank has; the mean loss, partial.

        Each rank computes its rows; the ranks' losses add up. Sends what the layers send, and one
        all-reduce of all dense gradients.
        """
        self.model.zero_gradients()
        logits, saved = self.model.forward(shard(x))
        loss, grad_logits = next_token_loss(logits, shard(targets), len(x))
        self.model.backward_first(grad_logits, saved)
        all_reduce_gradients_flat(self.dense_gradients)
        self.optimizer.step(self.dense_gradients)
        for experts, optimizer in zip(self.experts, self.expert_optimizers, strict=True):
            sum_copies(experts)
            optimizer.step(experts.gradients())
        return loss

    def place(self, placements: list[Placement]) -> None:
        """Between two steps: give each layer of experts its new placement."""
        pairs = zip(self.experts, self.expert_optimizers, placements, strict=True)
        for experts, optimizer, placement in pairs:
            move(experts, placement, optimizer)
