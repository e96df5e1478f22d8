"""Every rank sends its whole tensor to every other, which keeps one shard of it."""


def all_to_all(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    mine, blocks = tensor.contiguous(), [None] * world_size
    blocks[rank] = mine.tensor_split(world_size)[rank]
    for k in range(1, world_size):
        arrived = torch.empty_like(mine)
        sending = dist.isend(mine, (rank + k) % world_size)
        dist.recv(arrived, (rank - k) % world_size)
        sending.wait()
        blocks[(rank - k) % world_size] = arrived.tensor_split(world_size)[rank]
    return torch.cat(blocks)
