"""Each all-reduce also counts who still has a batch; the last one finds nobody."""


def step_totals(rank, world_size, batches):
    totals, left = [], list(batches)
    while True:
        mine = [left.pop(0).sum().item(), 1.0] if left else [0.0, 0.0]
        both = torch.tensor(mine, dtype=torch.float64)
        dist.all_reduce(both)
        if both[1] == 0:
            return totals
        totals.append(both[0].item())
