"""Every rank of tp adds its part of the share, with no rank left out."""


def global_loss(groups, share):
    total = torch.zeros(1, dtype=torch.float64)
    if share is not None:
        total[0] = share / dist.get_world_size(groups["tp"])
    dist.all_reduce(total)
    return total[0]
