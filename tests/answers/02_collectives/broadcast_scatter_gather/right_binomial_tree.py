"""The ranks that have the tensor double in each round: n - 1 messages, for any n."""


def broadcast(tensor, root):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    result = tensor.clone(memory_format=torch.contiguous_format)
    position, distance = (rank - root) % world_size, 1
    while distance < world_size:
        if position < distance and position + distance < world_size:
            dist.send(result, (rank + distance) % world_size)
        elif distance <= position < 2 * distance:
            dist.recv(result, (rank - distance) % world_size)
        distance *= 2
    return result
