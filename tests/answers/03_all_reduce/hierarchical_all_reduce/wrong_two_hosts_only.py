"""Exchanges shards with one partner: right for two hosts, wrong for three."""


def hierarchical_all_reduce(tensor, ranks_per_host):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    host, place = divmod(rank, ranks_per_host)
    inside = [host * ranks_per_host + i for i in range(ranks_per_host)]
    total = tensor.flatten().clone()
    shards = list(total.tensor_split(ranks_per_host))
    reduce_scatter_around(shards, inside)
    if world_size > ranks_per_host:
        partner = (rank + ranks_per_host) % world_size
        arrived = torch.empty_like(shards[place])
        sending = dist.isend(shards[place].clone(), partner)
        dist.recv(arrived, (rank - ranks_per_host) % world_size)
        sending.wait()
        shards[place] += arrived
    all_gather_around(shards, inside)
    return total.reshape(tensor.shape)
