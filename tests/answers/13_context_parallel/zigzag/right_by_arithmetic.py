"""Numbers instead of masks, an index instead of halves."""


def positions_of(rank, world_size, num_positions):
    size, rest = divmod(num_positions, 2 * world_size)
    if rest:
        raise ValueError(f"{rest} of {num_positions} positions are left over")
    first, last = rank * size, (2 * world_size - 1 - rank) * size
    return torch.tensor([*range(first, first + size), *range(last, last + size)])


def pairs_of(rank, owner, world_size, num_positions):
    size = num_positions // (2 * world_size)
    if rank == owner:
        return size * (size + 1) + size * size
    return 2 * size * size


def whole_of(shards):
    n, length = len(shards), len(shards[0])
    out = shards[0].new_empty(n * length, *shards[0].shape[1:])
    for rank, shard in enumerate(shards):
        size = length // 2
        out[rank * size : (rank + 1) * size] = shard[:size]
        end = n * length - rank * size
        out[end - size : end] = shard[size:]
    return out
