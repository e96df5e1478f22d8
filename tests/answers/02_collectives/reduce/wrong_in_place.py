"""Adds into the caller's tensor."""


def reduce(tensor, root):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if rank != root:
        dist.send(tensor.contiguous(), root)
        return None
    arrived = torch.empty(tensor.shape, dtype=tensor.dtype)
    for peer in range(world_size):
        if peer != root:
            dist.recv(arrived, peer)
            tensor += arrived
    return tensor.clone()
