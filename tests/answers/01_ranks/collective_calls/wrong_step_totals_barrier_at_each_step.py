"""A barrier cures nothing, and costs a round at each step."""


def step_totals(rank, world_size, batches):
    num_steps = torch.tensor(len(batches))
    dist.all_reduce(num_steps, op=dist.ReduceOp.MAX)
    totals = []
    for step in range(num_steps.item()):
        total = torch.zeros((), dtype=torch.float64)
        if step < len(batches):
            total += batches[step].sum()
        dist.barrier()
        dist.all_reduce(total)
        totals.append(total.item())
    return totals
