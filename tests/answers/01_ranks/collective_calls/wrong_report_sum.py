"""A sum where the mean is asked."""


def report(rank, world_size, weight, loss):
    weight, loss = weight.clone(), loss.clone()
    dist.all_reduce(loss)
    if rank == 0:
        print(f"loss {loss.item():.3f}")
    dist.broadcast(weight, src=0)
    return weight, loss
