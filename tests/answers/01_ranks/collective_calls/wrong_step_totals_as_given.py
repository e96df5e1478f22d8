"""The planted program: a rank with fewer batches leaves the loop. Hangs."""


def step_totals(rank, world_size, batches):
    totals = []
    for batch in batches:
        total = batch.sum()
        dist.all_reduce(total)
        totals.append(total.item())
    return totals
