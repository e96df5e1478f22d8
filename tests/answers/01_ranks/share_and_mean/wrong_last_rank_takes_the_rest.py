"""10 items over 4 ranks: 2, 2, 2, 4."""


def share(rank, world_size, num_items):
    length = num_items // world_size
    stop = num_items if rank == world_size - 1 else (rank + 1) * length
    return range(rank * length, stop)
