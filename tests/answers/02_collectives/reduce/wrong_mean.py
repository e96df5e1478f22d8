"""A mean where a sum is asked."""


def reduce(tensor, root):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if rank != root:
        dist.send(tensor.contiguous(), root)
        return None
    total = tensor.clone(memory_format=torch.contiguous_format)
    arrived = torch.empty_like(total)
    for peer in range(world_size):
        if peer != root:
            dist.recv(arrived, peer)
            total += arrived
    return total / world_size
