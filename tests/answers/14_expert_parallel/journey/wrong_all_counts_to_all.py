"""Every rank is told the rows for all experts, not only for its own."""


def to_experts(x, chosen, home):
    n, numbers = dist.get_world_size(), chosen.flatten()
    by_rank = home.argsort(stable=True)
    order = by_rank.argsort()[numbers].argsort(stable=True)
    loads = torch.bincount(numbers, minlength=len(home))[by_rank]
    held = torch.bincount(home, minlength=n).tolist()
    here = home[by_rank] == dist.get_rank()
    mine = by_rank[here]
    counts = loads.new_empty(n * len(home))
    dist.all_to_all_single(counts, loads.repeat(n))
    counts = counts.view(n, len(home))[:, here].flatten()
    sends = [int(part.sum()) for part in loads.split(held)]
    receives = counts.view(n, len(mine)).sum(dim=1).tolist()
    rows = x.new_empty(sum(receives), x.shape[1])
    dist.all_to_all_single(rows, x[order // chosen.shape[1]], receives, sends)
    return rows, mine.repeat(n).repeat_interleave(counts), (order, sends, receives)
