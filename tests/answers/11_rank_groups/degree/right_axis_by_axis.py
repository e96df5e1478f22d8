"""Divides by one degree after the other; the refusal has more numbers than were asked for."""


def data_parallel_degree(world_size, tp, cp, pp):
    left = world_size
    for degree in (tp, cp, pp):
        left, over = divmod(left, degree)
        if over:
            raise ValueError(f"{tp} * {cp} * {pp} = {tp * cp * pp} into {world_size}: {over} over")
    return left
