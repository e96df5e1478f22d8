"""Sums in double precision, and sends twice the bytes."""


def ring_all_reduce(tensor):
    total = tensor.flatten().to(torch.float64, copy=True)
    n = dist.get_world_size()
    parts = list(total.tensor_split(n))
    reduce_scatter_around(parts, list(range(n)))
    all_gather_around(parts, list(range(n)))
    return total.reshape(tensor.shape).to(tensor.dtype)
