"""The ring of the lecture: everything one way."""


def double_ring_all_reduce(tensor):
    everyone = list(range(dist.get_world_size()))
    total = tensor.flatten().clone()
    parts = list(total.tensor_split(len(everyone)))
    reduce_scatter_around(parts, everyone)
    all_gather_around(parts, everyone)
    return total.reshape(tensor.shape)
