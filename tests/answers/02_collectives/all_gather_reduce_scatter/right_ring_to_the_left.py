"""The ring turned round, in batches, starting with the receive."""


def neighbours(outgoing, incoming):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    receive = dist.P2POp(dist.irecv, incoming, (rank + 1) % world_size)
    send = dist.P2POp(dist.isend, outgoing, (rank - 1) % world_size)
    for work in dist.batch_isend_irecv([receive, send]):
        work.wait()


def all_gather(shard, num_rows):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    shards = list(shard.new_empty(num_rows, *shard.shape[1:]).tensor_split(world_size))
    shards[rank].copy_(shard)
    for step in range(world_size - 1):
        neighbours(shards[(rank + step) % world_size], shards[(rank + step + 1) % world_size])
    return torch.cat(shards)


def reduce_scatter(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    shards = [part.contiguous() for part in tensor.tensor_split(world_size)]
    passing = shards[(rank + 1) % world_size]
    for step in range(2, world_size + 1):
        mine = shards[(rank + step) % world_size]
        arrived = torch.empty_like(mine)
        neighbours(passing, arrived)
        passing = arrived + mine
    return passing.clone()
