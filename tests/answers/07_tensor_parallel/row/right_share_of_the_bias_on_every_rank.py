"""Every rank adds a n-th of the bias, and there are n of them."""


def row_forward(x, weight, bias):
    y = torch.addmm(bias / dist.get_world_size(), x, weight.T)
    dist.all_reduce(y)
    return y
