"""Data parallelism: every rank holds the whole model, and computes a share of every batch.

replicas      equal weights, equal gradients, buckets that overlap with backward: read this
hooks         the same for any nn.Module: how torch's DDP is told that a gradient is final
compression   a bucket's sum in half the bytes, or in few
lab           what lecture 05 runs and draws
"""

from byhand.data_parallel.compression import Float16, Sum, TopK
from byhand.data_parallel.hooks import GradientHooks
from byhand.data_parallel.replicas import (
    DataParallel,
    all_reduce_gradients,
    all_reduce_gradients_flat,
    assign_buckets,
    batches,
    broadcast_parameters,
    evaluate,
    training_step,
)
from byhand.model.shards import shard

__all__ = [
    "DataParallel",
    "Float16",
    "GradientHooks",
    "Sum",
    "TopK",
    "all_reduce_gradients",
    "all_reduce_gradients_flat",
    "assign_buckets",
    "batches",
    "broadcast_parameters",
    "evaluate",
    "shard",
    "training_step",
]
