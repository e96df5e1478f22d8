"""Half of the ranks that still have a sum hand it over, in each round."""


def reduce(tensor, root):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    total = tensor.clone(memory_format=torch.contiguous_format)
    position, distance = (rank - root) % world_size, 1
    while distance < world_size:
        if position & distance:
            dist.send(total, (rank - distance) % world_size)
            return None
        if position + distance < world_size:
            arrived = torch.empty_like(total)
            dist.recv(arrived, (rank + distance) % world_size)
            total = total + arrived
        distance *= 2
    return total
