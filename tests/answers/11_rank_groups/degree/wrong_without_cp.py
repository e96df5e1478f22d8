"""Context-parallel ranks are counted as copies of the model."""


def data_parallel_degree(world_size, tp, cp, pp):
    if world_size % (tp * pp):
        raise ValueError(f"{world_size} ranks are not a multiple of {tp * pp}")
    return world_size // (tp * pp)
