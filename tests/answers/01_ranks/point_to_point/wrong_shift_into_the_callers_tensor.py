"""Overwrites its argument."""


def shift(rank, world_size, tensor):
    if world_size > 1:
        sending = dist.isend(tensor.clone(), (rank + 1) % world_size)
        dist.recv(tensor, (rank - 1) % world_size)
        sending.wait()
    return tensor.clone()
