"""No hang, because nothing is sent."""


def shift(rank, world_size, tensor):
    return tensor.clone()
