"""Changes the caller's tensor."""


def hierarchical_all_reduce(tensor, ranks_per_host):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    host, place = divmod(rank, ranks_per_host)
    inside = [host * ranks_per_host + i for i in range(ranks_per_host)]
    across = list(range(place, world_size, ranks_per_host))
    total = tensor.reshape(-1)
    shards = list(total.tensor_split(len(inside)))
    pieces = list(shards[place].tensor_split(len(across)))
    reduce_scatter_around(shards, inside)
    reduce_scatter_around(pieces, across)
    all_gather_around(pieces, across)
    all_gather_around(shards, inside)
    return total.reshape(tensor.shape)
