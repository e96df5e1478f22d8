"""A position does not see itself."""


def pairs_of(rank, owner, world_size, num_positions):
    chunks = torch.arange(num_positions).chunk(2 * world_size)
    queries, keys = (
        torch.cat([chunks[one], chunks[2 * world_size - 1 - one]]) for one in (rank, owner)
    )
    return int((queries[:, None] > keys).sum())
