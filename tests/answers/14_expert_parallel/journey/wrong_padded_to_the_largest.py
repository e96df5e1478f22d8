"""Every split is as large as the largest one that any rank could send: padding travels."""


def to_experts(x, chosen, home):
    n, numbers, features = dist.get_world_size(), chosen.flatten(), x.shape[1]
    loads = torch.bincount(numbers, minlength=len(home))
    asked = [(home == r).nonzero()[:, 0] for r in range(n)]
    mine = asked[dist.get_rank()]
    counts = loads.new_empty(n * len(mine))
    held = [len(one) for one in asked]
    dist.all_to_all_single(counts, loads[torch.cat(asked)], [len(mine)] * n, held)
    places = 30  # enough for all
    buffer, order = x.new_zeros(n, places, features), []
    for r in range(n):
        here = torch.cat([(numbers == e).nonzero()[:, 0] for e in asked[r]] + [numbers[:0]])
        buffer[r, : len(here)] = x[here // chosen.shape[1]]
        order.append(here)
    arrived = torch.empty_like(buffer)
    dist.all_to_all_single(arrived, buffer)
    totals = counts.view(n, len(mine)).sum(dim=1).tolist()
    rows = torch.cat([one[:total] for one, total in zip(arrived, totals, strict=True)])
    return rows, mine.repeat(n).repeat_interleave(counts), (order, totals, places)


def from_experts(made, weights, saved):
    order, totals, places = saved
    buffer = made.new_zeros(len(totals), places, made.shape[1])
    for one, part in zip(buffer, made.split(totals), strict=True):
        one[: len(part)] = part
    back = torch.empty_like(buffer)
    dist.all_to_all_single(back, buffer)
    y = made.new_zeros(weights.numel(), made.shape[1])
    for one, here in zip(back, order, strict=True):
        y[here] = one[: len(here)]
    return (weights[..., None] * y.view(*weights.shape, -1)).sum(dim=1)
