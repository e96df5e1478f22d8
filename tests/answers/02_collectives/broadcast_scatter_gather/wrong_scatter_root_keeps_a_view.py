"""The root's shard is part of the caller's tensor."""


def scatter(tensor, root):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    shards = tensor.tensor_split(world_size)
    if rank == root:
        for peer in range(world_size):
            if peer != root:
                dist.send(shards[peer].contiguous(), peer)
        return shards[rank]
    mine = shards[rank].clone(memory_format=torch.contiguous_format)
    dist.recv(mine, root)
    return mine
