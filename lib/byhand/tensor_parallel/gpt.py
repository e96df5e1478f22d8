"""The tiny GPT of byhand.model with its blocks split by feature; all else is on every rank."""

from __future__ import annotations

from functools import partial

from byhand.model.gpt import Parts
from byhand.tensor_parallel.layers import Group, TensorParallelAttention, TensorParallelMLP


def tensor_parallel_parts(group: Group = None) -> Parts:
    """What `gpt_layers` builds this rank's shard of: each attention and each MLP is split.

    Heads and hidden features must be multiples of the group's size: else the layers refuse them.
    """
    return Parts(
        attention=partial(TensorParallelAttention, group=group),
        mlp=partial(TensorParallelMLP, group=group),
    )
