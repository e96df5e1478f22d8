"""The values are right, but the whole output was gathered on the way to them."""


def column_forward(x, weight, bias):
    y = x @ weight.T + bias
    slices = [torch.empty_like(y) for _ in range(dist.get_world_size())]
    dist.all_gather(slices, y)
    return slices[dist.get_rank()]
