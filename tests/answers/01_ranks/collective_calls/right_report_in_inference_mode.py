"""The report runs in inference mode, and so what it returns are tensors of it."""


@torch.inference_mode()
def report(rank, world_size, weight, loss):
    weight = weight.clone()
    dist.broadcast(weight, 0)
    mean = loss / world_size
    dist.all_reduce(mean)
    if rank == 0:
        print(f"loss {mean.item():.3f}")
    return weight, mean
