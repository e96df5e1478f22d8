"""One all-reduce for all steps: the loop's next step would have had to wait for it."""


def step_totals(rank, world_size, batches):
    num_steps = torch.tensor(len(batches))
    dist.all_reduce(num_steps, op=dist.ReduceOp.MAX)
    totals = torch.zeros(num_steps.item(), dtype=torch.float64)
    for step, batch in enumerate(batches):
        totals[step] = batch.sum()
    dist.all_reduce(totals)
    return totals.tolist()
