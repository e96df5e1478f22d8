"""Recursive halving and doubling: no partner for the last rank of three."""


def all_reduce(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    flat = tensor.flatten().clone()
    shards, first, length = flat.tensor_split(world_size), 0, world_size
    while length > 1:
        half = length // 2
        peer = rank + half if rank - first < half else rank - half
        keep = first if rank - first < half else first + half
        give = first + half if keep == first else first
        outgoing = torch.cat(shards[give : give + half])
        arrived = torch.empty_like(torch.cat(shards[keep : keep + half]))
        sending = dist.isend(outgoing, peer)
        dist.recv(arrived, peer)
        sending.wait()
        sizes = [shard.numel() for shard in shards[keep : keep + half]]
        for shard, part in zip(shards[keep : keep + half], arrived.split(sizes)):
            shard += part
        first, length = keep, half
    return all_gather(shards[rank], flat.numel()).reshape(tensor.shape)
