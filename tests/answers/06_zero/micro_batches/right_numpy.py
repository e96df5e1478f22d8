"""Computes in numpy, and returns its float64."""

import numpy as np


def most_micro_batches(stage, num_bytes, world_size, bytes_per_second, compute_seconds):
    if world_size == 1:
        return np.inf
    each = num_bytes * (world_size - 1) / world_size / bytes_per_second
    collectives = np.floor(compute_seconds / each)
    if stage == 1:
        return np.inf if collectives >= 2 else 0
    return np.maximum(collectives - 1, 0) if stage == 2 else collectives // 3
