"""Takes neighbours for the other host's ranks, and the other host's for neighbours."""


def hierarchical_all_reduce(tensor, ranks_per_host):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    host, place = divmod(rank, ranks_per_host)
    across = [host * ranks_per_host + i for i in range(ranks_per_host)]
    inside = list(range(place, world_size, ranks_per_host))
    total = tensor.flatten().clone()
    shards = list(total.tensor_split(len(inside)))
    pieces = list(shards[host].tensor_split(len(across)))
    reduce_scatter_around(shards, inside)
    reduce_scatter_around(pieces, across)
    all_gather_around(pieces, across)
    all_gather_around(shards, inside)
    return total.reshape(tensor.shape)
