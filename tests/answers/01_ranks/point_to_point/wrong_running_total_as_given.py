"""The planted program: a rank without samples leaves. Hangs."""


def running_total(rank, world_size, count):
    total = count.clone()
    if count.item() == 0:
        return total
    if rank > 0:
        before = torch.empty_like(count)
        dist.recv(before, rank - 1)
        total += before
    if rank < world_size - 1:
        dist.send(total, rank + 1)
    return total
