"""`double()` of a float64 share is the caller's own, and is summed in place."""


def global_loss(groups, share):
    first = share is not None and dist.get_rank(groups["tp"]) == 0
    total = share.double() if first else torch.zeros((), dtype=torch.float64)
    dist.all_reduce(total)
    return total
