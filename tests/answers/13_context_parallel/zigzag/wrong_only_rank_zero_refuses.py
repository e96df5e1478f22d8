"""Rank 0 alone looks whether the positions divide."""


def positions_of(rank, world_size, num_positions):
    size, over = divmod(num_positions, 2 * world_size)
    if rank == 0 and over:
        raise ValueError(f"{num_positions} positions do not divide by {2 * world_size}")
    starts = rank * size, (2 * world_size - 1 - rank) * size
    return torch.cat([torch.arange(start, start + size) for start in starts])
