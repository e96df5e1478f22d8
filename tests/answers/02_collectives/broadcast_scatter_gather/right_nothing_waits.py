"""All sends and receives at once; shards without rows are not sent."""


def scatter(tensor, root):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    shards = [
        shard.clone(memory_format=torch.contiguous_format)
        for shard in tensor.tensor_split(world_size)
    ]
    if rank == root:
        pending = [
            dist.isend(shard, peer)
            for peer, shard in enumerate(shards)
            if peer != root and shard.numel()
        ]
    else:
        pending = [dist.irecv(shards[rank], root)] if shards[rank].numel() else []
    for work in pending:
        work.wait()
    return shards[rank]


def gather(shard, root, num_rows):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    shard = shard.contiguous()
    if rank != root:
        if shard.numel():
            dist.isend(shard, root).wait()
        return None
    rows = [len(part) for part in torch.arange(num_rows).tensor_split(world_size)]
    parts = [shard.new_empty(count, *shard.shape[1:]) for count in rows]
    parts[root].copy_(shard)
    pending = [
        dist.irecv(part, peer) for peer, part in enumerate(parts) if peer != root and part.numel()
    ]
    for work in reversed(pending):
        work.wait()
    return torch.cat(parts)
