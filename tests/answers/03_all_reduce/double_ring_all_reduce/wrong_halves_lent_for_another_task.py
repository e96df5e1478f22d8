"""Both reduce-scatters, then both all-gathers, by what is lent for the two levels alone."""


def double_ring_all_reduce(tensor):
    everyone = list(range(dist.get_world_size()))
    total = tensor.flatten().clone()
    halves = [half.tensor_split(len(everyone)) for half in total.tensor_split(2)]
    for around in (reduce_scatter_around, all_gather_around):
        around(halves[0], everyone)
        around(halves[1], everyone[::-1])
    return total.reshape(tensor.shape)
