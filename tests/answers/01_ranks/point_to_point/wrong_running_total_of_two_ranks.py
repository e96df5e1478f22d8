"""Passes on its own count and not what came before."""


def running_total(rank, world_size, count):
    total = count.clone()
    if rank > 0:
        before = torch.empty_like(count)
        dist.recv(before, rank - 1)
        total += before
    if rank < world_size - 1:
        dist.send(count, rank + 1)
    return total
