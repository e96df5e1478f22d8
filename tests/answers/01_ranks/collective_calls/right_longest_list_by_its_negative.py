"""The largest number as the smallest of the negatives; every list padded with zeros."""


def step_totals(rank, world_size, batches):
    fewest = torch.tensor([-len(batches)], dtype=torch.int32)
    dist.all_reduce(fewest, op=dist.ReduceOp.MIN)
    missing = -fewest.item() - len(batches)
    totals = []
    for batch in [*batches, *[torch.zeros(0, dtype=torch.float64)] * missing]:
        total = batch.sum(dim=0, keepdim=True)
        dist.all_reduce(total, async_op=True).wait()
        totals += total.tolist()
    return totals


def report(rank, world_size, weight, loss):
    mean, new = loss * 1, torch.empty(weight.shape, dtype=weight.dtype)
    if rank == 0:
        new.copy_(weight)
    dist.broadcast(new, group_src=0)
    dist.all_reduce(mean)
    mean = mean / dist.get_world_size()
    if dist.get_rank() == 0:
        sys.stdout.write(f"loss {mean.item():.3f}\n")
    return new, mean
