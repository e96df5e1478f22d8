"""Shares of different length count the same."""


def parallel_mean(rank, world_size, items):
    mine = share(rank, world_size, len(items))
    total = items[mine.start : mine.stop].mean()
    dist.all_reduce(total)
    mean = total.item() / world_size
    if rank == 0:
        print(f"mean {mean:.3f}")
    return mean
