"""The same twenty steps by what the course wrote, in the same layouts.

Layers have explicit backward passes here, so a step is not torch's loop. Losses are means over the
global batch, whoever has how many rows; a rank yields its share, times the number of ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch.distributed as dist

from byhand.costs.layout import Layout
from byhand.data_parallel import DataParallel
from byhand.frameworks.by_torch import LR, Batches, Losses
from byhand.hybrid_parallel import GROUPS, HybridParallel, chunks_of
from byhand.model.gpt import GPT, gpt_layers, next_token_loss
from byhand.model.mlp import MLP
from byhand.model.optimizers import AdamW
from byhand.model.shards import shard
from byhand.pipeline_schedules import gpipe, one_forward_one_backward
from byhand.pipeline_schedules.actions import Actions
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.zero import ShardedOptimizer, ShardedParameters

adam = partial(AdamW, lr=LR)


def data_parallel(weights: GPT, batches: Batches) -> Losses:
    """Lecture 05: buckets that leave during backward. What torch calls DDP."""
    model = DataParallel(MLP(gpt_layers(weights)))
    optimizer = adam(model.parameters())
    for tokens, following in batches:
        model.zero_gradients()
        logits, saved = model.forward(shard(tokens))
        loss, grad = next_token_loss(logits, shard(following), len(tokens))
        model.backward(grad, saved)
        optimizer.step(model.gradients())
        yield loss * dist.get_world_size()


def sharded(weights: GPT, batches: Batches, way: Any) -> Losses:
    """Lecture 06, a stage of ZeRO."""
    model = way(gpt_layers(weights), adam)
    for tokens, following in batches:
        logits, saved = model.forward(shard(tokens))
        loss, grad = next_token_loss(logits, shard(following), len(tokens))
        model.backward(grad, saved)
        model.step()
        yield loss * dist.get_world_size()


zero_1 = partial(sharded, way=ShardedOptimizer)
zero_3 = partial(sharded, way=ShardedParameters)


def hybrid(
    weights: GPT,
    batches: Batches,
    axis: str,
    num_micro_batches: int = 1,
    how: Callable[[int, int], Actions] = one_forward_one_backward,
) -> Losses:
    """Lecture 12, with all ranks along one axis: "tp" or "pp"."""
    n = dist.get_world_size()
    layout = Layout(tp=n) if axis == "tp" else Layout(pp=n)
    groups = groups_for_this_rank(layout.groups, GROUPS)
    schedule = how(layout.pp, num_micro_batches)
    shape = tuple(weights.positions.shape)
    model = HybridParallel(
        chunks_of(weights, groups), groups, schedule, shape, adam, max_norm=float("inf")
    )
    for tokens, following in batches:
        yield model.step(tokens, following).loss


tensor_parallel = partial(hybrid, axis="tp")
pipelined = partial(hybrid, axis="pp", num_micro_batches=4)
as_gpipe = partial(pipelined, how=gpipe)
naive = partial(hybrid, axis="pp")  # one micro-batch: all stages but one wait
