"""The planted program: everybody sends first. Hangs."""


def shift(rank, world_size, tensor):
    arrived = torch.empty_like(tensor)
    dist.send(tensor, (rank + 1) % world_size)
    dist.recv(arrived, (rank - 1) % world_size)
    return arrived
