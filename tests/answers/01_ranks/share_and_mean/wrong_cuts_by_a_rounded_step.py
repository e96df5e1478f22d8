"""30 items over 11 ranks: 11 steps of 30 / 11 are a little less than 30 in floating point."""


def share(rank, world_size, num_items):
    step = num_items / world_size
    return range(int(rank * step), int((rank + 1) * step))
