"""A ring over all ranks: right values, and 2 (n - 1) / n of the tensor leaves every host."""


def hierarchical_all_reduce(tensor, ranks_per_host):
    everyone = list(range(dist.get_world_size()))
    total = tensor.flatten().clone()
    parts = list(total.tensor_split(len(everyone)))
    reduce_scatter_around(parts, everyone)
    all_gather_around(parts, everyone)
    return total.reshape(tensor.shape)
