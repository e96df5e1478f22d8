"""The same twenty steps under everything that torch ships. Read `alone` first: the rest change it.

Each is a generator: full weights and the global batches in, and out comes, after each step, this
rank's loss: of its own rows where rows are shared out, of all rows where they are not, None where
this rank never sees it. The mean of what ranks yield is the loss of the global batch. Returned, at
last, is this rank's model.

Shapes: tokens and those that follow, [B, S] each; logits [B, S, V].
Sources: the torch 2.13 pages of each; docs.pytorch.org.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.optim import AdamW, Optimizer

from byhand.frameworks.transformer import blocks_of, transformer
from byhand.model.gpt import GPT
from byhand.model.shards import shard

Batches = Sequence[tuple[Tensor, Tensor]]
Losses = Generator[Tensor | None, None, Any]
LR = 3e-3


def alone(weights: GPT, batches: Batches) -> Losses:
    """One device: what all others change a few lines of. Sends nothing."""
    model = transformer(weights)
    optimizer = AdamW(model.parameters(), LR)
    yield from train(model, optimizer, batches)
    return model


def train(model: nn.Module, optimizer: Optimizer, batches: Batches) -> Losses:
    """The loop that most of them leave as it is."""
    for tokens, following in batches:
        optimizer.zero_grad()
        loss = next_token_loss(model(tokens), following)
        loss.backward()
        optimizer.step()
        yield loss.detach()


def next_token_loss(logits: Tensor, following: Tensor) -> Tensor:
    """The mean over all positions of these rows."""
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())


def rows_of(batches: Batches, group: dist.ProcessGroup | None = None) -> Batches:
    """This rank's rows of every batch, as data parallelism shares them out over a group."""
    return [(shard(each, group=group), shard(after, group=group)) for each, after in batches]


def ddp(weights: GPT, batches: Batches) -> Losses:
    """Data parallelism: every rank has the model, and 1/n of the rows."""
    model = DistributedDataParallel(transformer(weights))
    optimizer = AdamW(model.parameters(), LR)
    yield from train(model, optimizer, rows_of(batches))
    return model


def zero_redundancy(weights: GPT, batches: Batches) -> Losses:
    """ZeRO-1: the same, but each rank has the optimizer's state of 1/n of the parameters."""
    model = DistributedDataParallel(transformer(weights))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), AdamW, lr=LR)
    yield from train(model, optimizer, rows_of(batches))
    return model


def fsdp2(weights: GPT, batches: Batches) -> Losses:
    """ZeRO-3: a rank has 1/n of everything, and a block's parameters while it computes."""
    model = transformer(weights)
    for block in blocks_of(model):
        fully_shard(block)
    fully_shard(model)
    optimizer = AdamW(model.parameters(), LR)
    yield from train(model, optimizer, rows_of(batches))
    return model


def sum_over_ranks(parameter: Tensor) -> None:
    """partial -> replicated: its gradient, in place."""
    dist.all_reduce(parameter.grad)


Plan = dict[str, ParallelStyle]
PLAN: Plan = {
    "attention.q": ColwiseParallel(),
    "attention.k": ColwiseParallel(),
    "attention.v": ColwiseParallel(),
    "attention.out": RowwiseParallel(),
    "up": ColwiseParallel(),
    "down": RowwiseParallel(),
}
# The norms of heads see [B, S, H, d], and each rank its own heads: dimension 2 is split.
NORMS: Plan = {
    "attention.q_norm": SequenceParallel(sequence_dim=2, use_local_output=True),
    "attention.k_norm": SequenceParallel(sequence_dim=2, use_local_output=True),
}


def tensor_parallel(
    weights: GPT, batches: Batches, plan: Plan = PLAN, sum_gains: bool = True
) -> Losses:
    """The layers of a block that a plan names, split by DTensor. The sum of gains is ours."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = transformer(weights)
    for block in blocks_of(model):
        parallelize_module(block, mesh, plan)
        if sum_gains:
            for norm in (block.attention.q_norm, block.attention.k_norm):
                norm.weight.register_post_accumulate_grad_hook(sum_over_ranks)
    optimizer = AdamW(model.parameters(), LR)
    yield from train(model, optimizer, batches)
    return model


def sharing_tokens() -> Plan:
    """A block's plan with sequence parallelism: between its layers a rank has its tokens alone."""
    tokens = Shard(1)  # of [B, S, D]
    whole = PrepareModuleInput(
        input_layouts=tokens, desired_input_layouts=Replicate(), use_local_output=False
    )
    return {
        **PLAN,
        **NORMS,  # of queries and keys: a rank has its own heads
        "attention_norm": SequenceParallel(),  # and sums its gradients over ranks
        "attention": whole,  # gathers
        "attention.out": RowwiseParallel(output_layouts=tokens),  # reduce-scatters
        "mlp_norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=tokens),  # gathers
        "down": RowwiseParallel(output_layouts=tokens),  # reduce-scatters
    }


def sharing_at_the_ends(last: int) -> Plan:
    """The model's plan for it: the first block gets this rank's tokens, the head gets all."""
    tokens, whole = Shard(1), Replicate()
    return {
        "0": PrepareModuleOutput(output_layouts=whole, desired_output_layouts=tokens),
        f"{last - 1}": SequenceParallel(),
        f"{last}": PrepareModuleInput(
            input_layouts=tokens, desired_input_layouts=whole, use_local_output=True
        ),
    }


def two_axes(weights: GPT, batches: Batches) -> Losses:
    """tp 2 within pairs of neighbours, FSDP2 across the pairs: torchtitan's two axes."""
    shape = dist.get_world_size() // 2, 2
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
    model = transformer(weights)
    parallelize_module(model, mesh["tp"], sharing_at_the_ends(len(model) - 1))
    for block in blocks_of(model):
        parallelize_module(block, mesh["tp"], sharing_tokens())
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    optimizer = AdamW(model.parameters(), LR)
    rows = rows_of(batches, mesh["dp"].get_group())  # a pair has the same rows
    yield from train(model, optimizer, rows)
    return model


def pipelined(
    weights: GPT,
    batches: Batches,
    num_micro_batches: int = 4,
    tie: bool = True,
    how: type = Schedule1F1B,
) -> Losses:
    """1F1B or GPipe, a stage a rank. The sum of the table's two gradients is ours."""
    model, rank, n = transformer(weights), dist.get_rank(), dist.get_world_size()
    table = model[0].table  # the head's, too: from here on two copies, on two ranks
    first, end = (each * len(model) // n for each in (rank, rank + 1))
    model = model[first:end]  # this rank's stage
    stage = PipelineStage(model, rank, n, torch.device("cpu"))
    schedule = how(stage, num_micro_batches, next_token_loss)  # lecture 09's loops
    optimizer, ends = AdamW(model.parameters(), LR), dist.new_group([0, n - 1])
    for tokens, following in batches:
        optimizer.zero_grad()
        losses: list[Tensor] = []
        given = (tokens,) if rank == 0 else ()  # others get a neighbour's activations
        target = following if rank == n - 1 else None
        schedule.step(*given, target=target, losses=losses)
        if tie and rank in (0, n - 1):  # the embedding's gradient + the head's
            dist.all_reduce(table.grad, group=ends)
        optimizer.step()
        yield torch.stack(losses).mean().detach() if losses else None
    return model


as_gpipe = partial(pipelined, how=ScheduleGPipe)
naive = partial(as_gpipe, num_micro_batches=1)  # one stage computes, the others wait
