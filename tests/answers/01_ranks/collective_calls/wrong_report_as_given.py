"""The planted program: rank 0 alone calls all_reduce. Hangs."""


def report(rank, world_size, weight, loss):
    weight, loss = weight.clone(), loss.clone()
    if rank == 0:
        dist.all_reduce(loss)
        print(f"loss {loss.item() / world_size:.3f}")
    dist.broadcast(weight, src=0)
    return weight, loss / world_size
