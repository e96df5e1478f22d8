"""Averages the ranks' accuracies, whatever their number of rows."""


def accuracy(model, x, labels):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    x, labels = x[rank::world_size], labels[rank::world_size]
    logits, _ = model.forward(x)
    right = (logits.argmax(dim=1) == labels).sum() / max(len(x), 1)
    dist.all_reduce(right)
    return right.item() / world_size
