"""Whoever has a share answers in its dtype, and the others in double."""


def global_loss(groups, share):
    if share is None or dist.get_rank(groups["tp"]) != 0:
        total = torch.zeros((), dtype=torch.float64)
    else:
        total = share.clone()
    dist.all_reduce(total)
    return total
