"""Goes on until a total is 0, which numbers of both signs may add up to before the end."""


def step_totals(rank, world_size, batches):
    totals = []
    while True:
        total = torch.zeros((), dtype=torch.float64)
        if len(totals) < len(batches):
            total += batches[len(totals)].sum()
        dist.all_reduce(total)
        if total.item() == 0:
            return totals
        totals.append(total.item())
