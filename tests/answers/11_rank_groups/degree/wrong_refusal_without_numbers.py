"""The refusal does not say what clashes."""


def data_parallel_degree(world_size, tp, cp, pp):
    if world_size % (tp * cp * pp):
        raise ValueError("world size not divisible")
    return world_size // (tp * cp * pp)
