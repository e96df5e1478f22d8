"""A transposed matrix cannot be sent as it is."""


def shift(rank, world_size, tensor):
    arrived = torch.empty_like(tensor)
    if world_size == 1:
        return tensor.clone()
    sending = dist.isend(tensor, (rank + 1) % world_size)
    dist.recv(arrived, (rank - 1) % world_size)
    sending.wait()
    return arrived
