"""What the last call returned is overwritten by the next: the buffer is kept to save memory."""

BUFFERS = {}


def broadcast(tensor, root):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    kind = tensor.shape, tensor.dtype
    if kind not in BUFFERS:
        BUFFERS[kind] = torch.empty(tensor.shape, dtype=tensor.dtype)
    result = BUFFERS[kind].copy_(tensor)
    if rank != root:
        dist.recv(result, (rank - 1) % world_size)
    if (rank + 1) % world_size != root:
        dist.send(result, (rank + 1) % world_size)
    return result
