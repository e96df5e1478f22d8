"""Counts on it that the embedding's group is the last one."""


def sum_tied_gradient(gradient, mine):
    if len(mine) < 2:
        return gradient
    total = gradient.clone()
    dist.all_reduce(total, group=list(mine.values())[-1])
    return total
