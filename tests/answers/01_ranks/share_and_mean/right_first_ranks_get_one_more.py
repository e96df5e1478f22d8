"""The other usual way to cut, and nansum instead of a slice."""


def share(rank, world_size, num_items):
    length, longer = divmod(num_items, world_size)
    start = rank * length + min(rank, longer)
    return range(start, start + length + (rank < longer))


def parallel_mean(rank, world_size, items):
    mean = (items.nansum() / items.numel()).reshape(1)
    dist.all_reduce(mean, async_op=True).wait()
    if not rank:
        print("mean", format(mean.item(), ".3f"))
    return mean.item()
