"""What each framework does not do: how it says so, or that it says nothing.

A refusal is a short program on every rank that asks for too much, and the sentence that comes back.
A silence is a way to train with one line left out: nothing is said, and the losses are another's.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from byhand.frameworks import by_hand, by_others, by_torch
from byhand.frameworks.by_torch import Batches
from byhand.frameworks.transformer import transformer
from byhand.model.gpt import GPT
from byhand.model.shards import shard


def unused_parameter(weights: GPT, batches: Batches) -> None:
    """DDP: a step in which one parameter has no gradient; and the next step."""
    model = nn.ModuleList([transformer(weights), nn.Linear(2, 2)])
    model.forward = model[0].forward
    parallel = DistributedDataParallel(model)
    for tokens, _ in batches[:2]:
        parallel(tokens).sum().backward()


def optimizer_state(weights: GPT, batches: Batches) -> None:
    """ZeroRedundancyOptimizer: its state, for a checkpoint."""
    model = transformer(weights)
    ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW).state_dict()


def plain_beside_sharded(weights: GPT, batches: Batches) -> None:
    """FSDP2: a parameter beside a plain tensor, outside of forward."""
    model = transformer(weights)
    fully_shard(model)
    print(model.state_dict()["0.table"] - weights.table)


def too_few_heads(weights: GPT, batches: Batches, way: Callable) -> None:
    """One head, for two ranks to split."""
    gain = torch.ones(2, 1, weights.positions.shape[1])
    blocks = [replace(block, gain=gain) for block in weights.blocks]
    next(way(replace(weights, blocks=blocks, num_heads=1), batches))


def too_few_micro_batches(weights: GPT, batches: Batches) -> None:
    """torch's pipelining: one micro-batch for two stages."""
    next(by_torch.pipelined(weights, batches, num_micro_batches=1))


def contradictory_batch(weights: GPT, batches: Batches) -> None:
    """DeepSpeed: sizes of a batch that do not multiply."""
    config = {
        "train_batch_size": 8,
        "train_micro_batch_size_per_gpu": 3,
        "gradient_accumulation_steps": 1,
    }
    initialize = by_others._deepspeed().initialize
    initialize(model=transformer(weights), config=config, dist_init_required=False)


def odd_degree(weights: GPT, batches: Batches) -> None:
    """Megatron-core: a degree that does not divide the ranks."""
    from megatron.core import parallel_state

    parallel_state.initialize_model_parallel(dist.get_world_size() + 1)


REFUSALS: dict[str, Callable[[GPT, Batches], None]] = {
    "DDP": unused_parameter,
    "ZeroRedundancyOptimizer": optimizer_state,
    "FSDP2": plain_beside_sharded,
    "DTensor": partial(too_few_heads, way=by_torch.tensor_parallel),
    "pipelining": too_few_micro_batches,
    "DeepSpeed": contradictory_batch,
    "Megatron-core": odd_degree,
    "ours": partial(too_few_heads, way=by_hand.tensor_parallel),
}


def sentence_of(refuse: Callable, weights: GPT, batches: Batches) -> str:
    """How the error that comes back begins; or that none does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            refuse(weights, batches)
    except Exception as error:
        return textwrap.shorten(f"{type(error).__name__}: {error}", 165, placeholder=" ...")
    return "nothing"


def one_row_less(batches: Batches) -> Batches:
    """The same batches, whose rows two ranks cannot share equally."""
    return [(tokens[:-1], following[:-1]) for tokens, following in batches]


def uneven(weights: GPT, batches: Batches, way: Callable) -> by_torch.Losses:
    """A way that is given those; each rank's mean is weighed by its rows, so that losses are right.

    What is off is then the training alone.
    """
    given = one_row_less(batches)
    share = len(shard(given[0][0])) * dist.get_world_size() / len(given[0][0])
    for loss in way(weights, given):
        yield loss * share


def ours_uneven(weights: GPT, batches: Batches) -> by_torch.Losses:
    """Lecture 05's, which divides by the global batch, whoever has how many rows."""
    return by_hand.data_parallel(weights, one_row_less(batches))


def silences() -> dict[str, Callable[[GPT, Batches], by_torch.Losses]]:
    """By what nobody says: a way to train that says nothing; and ours, which is right."""
    return {
        "DTensor: gains": partial(by_torch.tensor_parallel, sum_gains=False),
        "pipelining: table": partial(by_torch.pipelined, tie=False),
        "DDP: unequal rows": partial(uneven, way=by_torch.ddp),
        "ours: unequal rows": ours_uneven,
    }
