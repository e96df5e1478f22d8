"""Alone, it returns the caller's own tensor."""


def hierarchical_all_reduce(tensor, ranks_per_host):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return tensor
    host, place = divmod(rank, ranks_per_host)
    inside = list(range(host * ranks_per_host, (host + 1) * ranks_per_host))
    across = list(range(place, n, ranks_per_host))
    total = tensor.flatten().clone()
    shards = list(total.tensor_split(len(inside)))
    pieces = list(shards[place].tensor_split(len(across)))
    reduce_scatter_around(shards, inside)
    reduce_scatter_around(pieces, across)
    all_gather_around(pieces, across)
    all_gather_around(shards, inside)
    return total.reshape(tensor.shape)
