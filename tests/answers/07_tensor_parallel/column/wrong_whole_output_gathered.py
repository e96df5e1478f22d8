"""The forward pass makes the whole output at once, on every rank."""


def column_forward(x, weight, bias):
    y = x @ weight.T + bias
    slices = [torch.empty_like(y) for _ in range(dist.get_world_size())]
    dist.all_gather(slices, y)
    return torch.cat(slices, dim=1)
