"""The broadcast before the all-reduce, which runs meanwhile."""


def report(rank, world_size, weight, loss):
    mean = loss / world_size
    weight = weight.clone()
    sending = dist.broadcast(weight, src=0, async_op=True)
    adding = dist.all_reduce(mean, async_op=True)
    sending.wait()
    adding.wait()
    if rank == 0:
        print(f"loss {mean:.3f}")
    return weight, mean
