"""Every rank counts a triangle, as if its chunk were the sequence."""


def pairs_of(rank, owner, world_size, num_positions):
    own = num_positions // world_size
    return own * (own + 1) // 2
