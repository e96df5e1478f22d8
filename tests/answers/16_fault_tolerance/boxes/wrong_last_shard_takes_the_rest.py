"""The rest goes to the last shard, not one by one to the first."""


def shard_box(shape, cuts, place):
    starts, sizes = [], []
    for size, count, number in zip(shape, cuts, place):
        each = size // count
        starts.append(number * each)
        sizes.append(each + (size % count if number == count - 1 else 0))
    return Box(tuple(starts), tuple(sizes))
