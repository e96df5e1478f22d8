"""Of a token's k experts only the first one is visited."""


def to_experts(x, chosen, home):
    chosen = chosen[:, :1]
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
    return rows, mine.repeat(n).repeat_interleave(counts), (order, sends, receives)


def from_experts(made, weights, saved):
    weights = weights[:, :1]
    order, sends, receives = saved
    returned = made.new_empty(len(order), made.shape[1])
    dist.all_to_all_single(returned, made.contiguous(), sends, receives)
    y = made.new_zeros(len(weights), made.shape[1])
    terms = weights.flatten()[order, None] * returned
    return y.index_add_(0, order // weights.shape[1], terms)
