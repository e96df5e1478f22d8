"""Nobody hangs, and the last batches are lost."""


def step_totals(rank, world_size, batches):
    num_steps = torch.tensor(len(batches))
    dist.all_reduce(num_steps, op=dist.ReduceOp.MIN)
    totals = []
    for batch in batches[: num_steps.item()]:
        total = batch.sum()
        dist.all_reduce(total)
        totals.append(total.item())
    return totals
