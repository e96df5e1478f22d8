"""Blocking sends before any recv: nobody receives."""


def all_to_all(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    shards = tensor.contiguous().tensor_split(world_size)
    blocks = [torch.empty_like(shards[rank]) for _ in range(world_size)]
    blocks[rank].copy_(shards[rank])
    others = [peer for peer in range(world_size) if peer != rank]
    for peer in others:
        dist.send(shards[peer], peer)
    for peer in others:
        dist.recv(blocks[peer], peer)
    return torch.cat(blocks)
