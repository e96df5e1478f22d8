"""The other way round hangs as well."""


def shift(rank, world_size, tensor):
    arrived = torch.empty_like(tensor)
    dist.recv(arrived, (rank - 1) % world_size)
    dist.send(tensor, (rank + 1) % world_size)
    return arrived
