"""Blocks of N // n rows: nobody asks the model about the last ones, which count as wrong."""


def accuracy(model, x, labels):
    rank, count = dist.get_rank(), max(1, len(x) // dist.get_world_size())
    mine = slice(rank * count, (rank + 1) * count)
    logits, _ = model.forward(x[mine])
    right = (logits.argmax(dim=1) == labels[mine]).sum()
    dist.all_reduce(right)
    return int(right) / len(x)
