"""A tree over partners rank xor 1, 2, 4: leaves ranks out when n is no power of two."""


def broadcast(tensor, root):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    result = tensor.clone(memory_format=torch.contiguous_format)
    position, distance = rank ^ root, 1
    while distance * 2 <= world_size:
        if position < distance:
            dist.send(result, rank ^ distance)
        elif position < 2 * distance:
            dist.recv(result, rank ^ distance)
        distance *= 2
    return result
