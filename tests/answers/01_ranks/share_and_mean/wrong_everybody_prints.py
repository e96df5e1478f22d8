"""Four lines instead of one."""


def parallel_mean(rank, world_size, items):
    mine = share(rank, world_size, len(items))
    total = items[mine.start : mine.stop].sum()
    dist.all_reduce(total)
    mean = total.item() / len(items)
    print(f"mean {mean:.3f}")
    return mean
