"""Rank 0 prints its own loss: the all-reduce is gone."""


def report(rank, world_size, weight, loss):
    weight = weight.clone()
    if rank == 0:
        print(f"loss {loss.item():.3f}")
    dist.broadcast(weight, src=0)
    return weight, loss.clone()
