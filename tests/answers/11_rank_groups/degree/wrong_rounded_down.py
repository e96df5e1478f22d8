"""Ranks that are left over are forgotten, and nobody is told."""


def data_parallel_degree(world_size, tp, cp, pp):
    return world_size // (tp * cp * pp)
