"""Inside a host each rank deals shards to all others directly; only hosts form a ring."""

from byhand.all_reduce.rings import all_gather_around, reduce_scatter_around


def hierarchical_all_reduce(tensor, ranks_per_host):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    host, place = divmod(rank, ranks_per_host)
    others = [i for i in range(ranks_per_host) if i != place]
    across = list(range(place, world_size, ranks_per_host))
    total = tensor.flatten().clone()
    shards = total.tensor_split(ranks_per_host)
    arrived = [torch.empty_like(shards[place]) for _ in others]
    base = host * ranks_per_host
    pending = [dist.isend(shards[i].clone(), base + i) for i in others]
    pending += [dist.irecv(part, base + i) for part, i in zip(arrived, others)]
    for work in pending:
        work.wait()
    for part in arrived:
        shards[place].add_(part)
    pieces = list(shards[place].tensor_split(len(across)))
    reduce_scatter_around(pieces, across)
    all_gather_around(pieces, across)
    pending = [dist.isend(shards[place], base + i) for i in others]
    pending += [dist.irecv(shards[i], base + i) for i in others]
    for work in pending:
        work.wait()
    return total.reshape(tensor.shape)
