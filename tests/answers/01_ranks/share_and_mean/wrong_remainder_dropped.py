"""10 items over 4 ranks: nobody takes the last two."""


def share(rank, world_size, num_items):
    length = num_items // world_size
    return range(rank * length, (rank + 1) * length)
