"""A world that holds one copy and a part of another is let pass."""


def data_parallel_degree(world_size, tp, cp, pp):
    copy = tp * cp * pp
    if world_size < copy:
        raise ValueError(f"{world_size} ranks cannot hold {copy}")
    return world_size // copy
