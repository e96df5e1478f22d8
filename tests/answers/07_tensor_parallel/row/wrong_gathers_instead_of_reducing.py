"""The terms of y are gathered on every rank and added there."""


def row_forward(x, weight, bias):
    y = x @ weight.T
    terms = [torch.empty_like(y) for _ in range(dist.get_world_size())]
    dist.all_gather(terms, y)
    return sum(terms) + bias
