"""Returns the refusal as text, and raises nothing."""


def data_parallel_degree(world_size, tp, cp, pp):
    copy = tp * cp * pp
    if world_size % copy:
        return f"ValueError: {world_size} is not a multiple of {copy}"
    return world_size // copy
