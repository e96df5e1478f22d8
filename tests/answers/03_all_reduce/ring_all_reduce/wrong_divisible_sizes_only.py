"""Shards of equal length: what is left over at the end is never added."""


def ring_all_reduce(tensor):
    world_size = dist.get_world_size()
    total = tensor.flatten().clone()
    length = total.numel() // world_size
    parts = [total[j * length : (j + 1) * length] for j in range(world_size)]
    reduce_scatter_around(parts, list(range(world_size)))
    all_gather_around(parts, list(range(world_size)))
    return total.reshape(tensor.shape)
