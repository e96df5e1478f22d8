"""A number that does not divide is cut anyhow."""


def positions_of(rank, world_size, num_positions):
    chunks = torch.arange(num_positions).tensor_split(2 * world_size)
    return torch.cat([chunks[rank], chunks[2 * world_size - 1 - rank]])
