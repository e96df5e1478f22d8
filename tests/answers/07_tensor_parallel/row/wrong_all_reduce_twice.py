"""y and the bias are summed apart, and the bias divided again: right, with a call too many."""


def row_forward(x, weight, bias):
    y, bias = x @ weight.T, bias.clone()
    dist.all_reduce(y)
    dist.all_reduce(bias)
    return y + bias / dist.get_world_size()
