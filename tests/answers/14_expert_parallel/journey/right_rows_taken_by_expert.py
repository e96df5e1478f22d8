"""Rows are handed out sorted by expert, as the library does, and unsorted again."""


def to_experts(x, chosen, home):
    n, numbers = dist.get_world_size(), chosen.flatten()
    by_rank = home.argsort(stable=True)
    order = by_rank.argsort()[numbers].argsort(stable=True)
    loads = torch.bincount(numbers, minlength=len(home))[by_rank]
    held = torch.bincount(home, minlength=n).tolist()
    mine = (home == dist.get_rank()).nonzero()[:, 0]
    counts = loads.new_empty(n * len(mine))
    dist.all_to_all_single(counts, loads, [len(mine)] * n, held)
    sends = [int(part.sum()) for part in loads.split(held)]
    receives = counts.view(n, len(mine)).sum(dim=1).tolist()
    rows = x.new_empty(sum(receives), x.shape[1])
    dist.all_to_all_single(rows, x[order // chosen.shape[1]], receives, sends)
    wanted = mine.repeat(n).repeat_interleave(counts)
    here = wanted.argsort()
    return rows[here], wanted[here], (order, sends, receives, here)


def from_experts(made, weights, saved):
    order, sends, receives, here = saved
    unsorted = torch.empty_like(made)
    unsorted[here] = made
    made = unsorted
    returned = made.new_empty(len(order), made.shape[1])
    dist.all_to_all_single(returned, made.contiguous(), sends, receives)
    y = made.new_zeros(len(weights), made.shape[1])
    terms = weights.flatten()[order, None] * returned
    return y.index_add_(0, order // weights.shape[1], terms)
