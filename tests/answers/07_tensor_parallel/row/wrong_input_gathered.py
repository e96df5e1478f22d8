"""Input and weight are made whole on every rank, and the product is computed n times."""


def gathered(tensor):
    slices = [torch.empty_like(tensor.contiguous()) for _ in range(dist.get_world_size())]
    dist.all_gather(slices, tensor.contiguous())
    return torch.cat(slices, dim=1)


def row_forward(x, weight, bias):
    return gathered(x) @ gathered(weight).T + bias
