"""The send is started, and nobody waits for it."""


def shift(rank, world_size, tensor):
    arrived = tensor.clone(memory_format=torch.contiguous_format)
    if world_size > 1:
        dist.isend(tensor.contiguous(), (rank + 1) % world_size)
        dist.recv(arrived, (rank - 1) % world_size)
    return arrived
