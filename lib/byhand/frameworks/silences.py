"""What no framework says: ways to train with one line left out, whose losses are another's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.distributed as dist

from byhand.frameworks import by_hand, by_torch
from byhand.frameworks.by_torch import Batches
from byhand.model.gpt import GPT
from byhand.model.shards import shard


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
