"""Two right collectives, but the root sends and receives everything."""


def all_reduce(tensor):
    total = reduce(tensor, 0)
    if total is None:
        total = torch.empty(tensor.shape, dtype=tensor.dtype)
    return broadcast(total, 0)
