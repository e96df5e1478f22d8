"""A token with two experts on one rank is sent there once."""


def to_experts(x, chosen, home):
    n, top_k = dist.get_world_size(), chosen.shape[1]
    homes = home[chosen]
    again = [(homes[:, :j] == homes[:, j, None]).any(dim=1) for j in range(top_k)]
    numbers = chosen.flatten()
    fresh = ~torch.stack(again, dim=1).flatten()
    by_rank = home.argsort(stable=True)
    kept = fresh.nonzero()[:, 0]
    order = kept[by_rank.argsort()[numbers[kept]].argsort(stable=True)]
    loads = torch.bincount(numbers[kept], minlength=len(home))[by_rank]
    held = torch.bincount(home, minlength=n).tolist()
    mine = (home == dist.get_rank()).nonzero()[:, 0]
    counts = loads.new_empty(n * len(mine))
    dist.all_to_all_single(counts, loads, [len(mine)] * n, held)
    sends = [int(part.sum()) for part in loads.split(held)]
    receives = counts.view(n, len(mine)).sum(dim=1).tolist()
    rows = x.new_empty(sum(receives), x.shape[1])
    dist.all_to_all_single(rows, x[order // chosen.shape[1]], receives, sends)
    return rows, mine.repeat(n).repeat_interleave(counts), (order, sends, receives)
