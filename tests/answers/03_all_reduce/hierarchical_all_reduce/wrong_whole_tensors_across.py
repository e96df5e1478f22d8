"""Sums inside the host first, and then every rank takes the whole sum across."""


def hierarchical_all_reduce(tensor, ranks_per_host):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    host, place = divmod(rank, ranks_per_host)
    inside = [host * ranks_per_host + i for i in range(ranks_per_host)]
    across = list(range(place, world_size, ranks_per_host))
    total = tensor.flatten().clone()
    for ranks in (inside, across):
        parts = list(total.tensor_split(len(ranks)))
        reduce_scatter_around(parts, ranks)
        all_gather_around(parts, ranks)
    return total.reshape(tensor.shape)
