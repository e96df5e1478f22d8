"""Each host's first rank carries the whole sum across, while the others wait."""


def hierarchical_all_reduce(tensor, ranks_per_host):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    host, place = divmod(rank, ranks_per_host)
    total = tensor.flatten().clone()
    first, arrived = host * ranks_per_host, torch.empty_like(total)
    if place:
        dist.send(total, first)
        dist.recv(total, first)
        return total.reshape(tensor.shape)
    for peer in range(first + 1, first + ranks_per_host):
        dist.recv(arrived, peer)
        total += arrived
    leaders = list(range(0, world_size, ranks_per_host))
    parts = list(total.tensor_split(len(leaders)))
    reduce_scatter_around(parts, leaders)
    all_gather_around(parts, leaders)
    for peer in range(first + 1, first + ranks_per_host):
        dist.send(total, peer)
    return total.reshape(tensor.shape)
