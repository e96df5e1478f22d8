"""Tensor parallelism: one layer's weight, split over ranks (Megatron-LM's two splits).

layers        column and row linear, the MLP block, attention by heads: read this
gpt           the tiny GPT with its blocks split so
operators     f and g for autograd
gathered      the all-gather variant, and why it loses
convolution   the same two splits, by channel
lab           what lecture 07 runs and draws
"""

from byhand.tensor_parallel.layers import (
    ColumnParallelLinear,
    RowParallelLinear,
    TensorParallelAttention,
    TensorParallelMLP,
)

__all__ = [
    "ColumnParallelLinear",
    "RowParallelLinear",
    "TensorParallelAttention",
    "TensorParallelMLP",
]
