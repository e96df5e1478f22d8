"""The second ring starts when the first has ended: the lent halves, called twice."""


def double_ring_all_reduce(tensor):
    everyone = list(range(dist.get_world_size()))
    total = tensor.flatten().clone()
    for half, ranks in zip(total.tensor_split(2), (everyone, everyone[::-1])):
        parts = list(half.tensor_split(len(ranks)))
        reduce_scatter_around(parts, ranks)
        all_gather_around(parts, ranks)
    return total.reshape(tensor.shape)
