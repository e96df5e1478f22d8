"""Rank 0 alone adds the bias before the sum: it is in there once."""


def row_forward(x, weight, bias):
    y = x @ weight.T
    if dist.get_rank() == 0:
        y += bias
    dist.all_reduce(y)
    return y
