"""Alone in the ring, it returns the caller's own tensor."""


def ring_all_reduce(tensor):
    tensor = tensor.contiguous()
    n = dist.get_world_size()
    if n == 1:
        return tensor
    total = tensor.flatten().clone()
    parts = list(total.tensor_split(n))
    reduce_scatter_around(parts, list(range(n)))
    all_gather_around(parts, list(range(n)))
    return total.reshape(tensor.shape)
