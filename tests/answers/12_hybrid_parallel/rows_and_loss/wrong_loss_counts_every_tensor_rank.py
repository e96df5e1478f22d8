"""A replica's share is added once for each of its tensor-parallel ranks."""


def global_loss(groups, share):
    total = torch.zeros((), dtype=torch.float64)
    if share is not None:
        total += share
    dist.all_reduce(total)
    return total
