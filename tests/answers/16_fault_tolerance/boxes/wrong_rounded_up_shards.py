"""All shards but the last have the size rounded up, as torch.chunk cuts."""


def shard_box(shape, cuts, place):
    starts, sizes = [], []
    for size, count, number in zip(shape, cuts, place):
        each = -(-size // count)
        starts.append(min(size, number * each))
        sizes.append(min(each, size - starts[-1]))
    return Box(tuple(starts), tuple(sizes))
