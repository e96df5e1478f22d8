"""Rank 0 gets the sum and hands it on: the sum is right, the calls are not."""


def row_forward(x, weight, bias):
    y = x @ weight.T
    dist.reduce(y, dst=0)
    y += bias
    dist.broadcast(y, src=0)
    return y
