"""Four lines instead of one."""


def report(rank, world_size, weight, loss):
    weight, loss = weight.clone(), loss.clone()
    dist.all_reduce(loss)
    print(f"loss {loss.item() / world_size:.3f}")
    dist.broadcast(weight, src=0)
    return weight, loss / world_size
