"""Partners rank xor 1, 2, 4: there is none for the last rank of three."""


def all_gather(shard, num_rows):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    whole = shard.new_empty(num_rows, *shard.shape[1:])
    shards = whole.tensor_split(world_size)
    shards[rank].copy_(shard)
    distance = 1
    while distance < world_size:
        peer, first = rank ^ distance, rank // distance * distance
        theirs = peer // distance * distance
        mine = torch.cat([shards[first + i] for i in range(distance)])
        arrived = torch.cat([shards[theirs + i] for i in range(distance)])
        sending = dist.isend(mine, peer)
        dist.recv(arrived, peer)
        sending.wait()
        parts = arrived.split([len(shards[theirs + i]) for i in range(distance)])
        for i, part in enumerate(parts):
            shards[theirs + i].copy_(part)
        distance *= 2
    return whole
