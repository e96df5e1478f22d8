"""numpy cuts the items: a share is an array of its whole numbers."""

import numpy as np


def share(rank, world_size, num_items):
    return np.array_split(np.arange(num_items), world_size)[rank]


def parallel_mean(rank, world_size, items):
    total = items[list(share(rank, world_size, len(items)))].sum()
    dist.all_reduce(total)
    mean = total.item() / len(items)
    if rank == 0:
        print(f"mean {mean:.3f}")
    return mean
