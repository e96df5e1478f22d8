"""Adds to the caller's count."""


def running_total(rank, world_size, count):
    if rank > 0:
        before = torch.empty_like(count)
        dist.recv(before, rank - 1)
        count += before
    if rank < world_size - 1:
        dist.send(count, rank + 1)
    return count
