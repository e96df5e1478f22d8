"""Partners at distance 1, 2, 4: a rank without a partner is forgotten."""


def reduce(tensor, root):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    total = tensor.clone(memory_format=torch.contiguous_format)
    arrived = torch.empty_like(total)
    position, distance = (rank - root) % world_size, 1
    while distance * 2 <= world_size:
        if position % (2 * distance) == distance:
            dist.send(total, (rank - distance) % world_size)
            return None
        if position + distance < world_size:
            dist.recv(arrived, (rank + distance) % world_size)
            total += arrived
        distance *= 2
    return total if rank == root else None
