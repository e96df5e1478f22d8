"""On average every rank sends the same: as many rows to each, and as many from each."""


def to_experts(x, chosen, home):
    n, numbers = dist.get_world_size(), chosen.flatten()
    by_rank = home.argsort(stable=True)
    order = by_rank.argsort()[numbers].argsort(stable=True)
    loads = torch.bincount(numbers, minlength=len(home))[by_rank]
    held = torch.bincount(home, minlength=n).tolist()
    mine = (home == dist.get_rank()).nonzero()[:, 0]
    counts = loads.new_empty(n * len(mine))
    dist.all_to_all_single(counts, loads, [len(mine)] * n, held)
    sends = receives = [len(part) for part in numbers.tensor_split(n)]
    rows = x.new_empty(sum(receives), x.shape[1])
    dist.all_to_all_single(rows, x[order // chosen.shape[1]], receives, sends)
    return rows, mine.repeat(n).repeat_interleave(counts), (order, sends, receives)
