"""Leaves out the rows that do not divide."""


def accuracy(model, x, labels):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    count = len(x) // world_size
    mine = slice(rank * count, (rank + 1) * count)
    logits, _ = model.forward(x[mine])
    right = (logits.argmax(dim=1) == labels[mine]).sum()
    dist.all_reduce(right)
    return int(right) / max(count * world_size, 1)
