"""Leaves the sum in the caller's tensor, as torch's own all_reduce does."""


def all_reduce(tensor):
    flat = tensor.flatten()
    total = all_gather(reduce_scatter(flat), num_rows=flat.numel())
    return tensor.copy_(total.reshape(tensor.shape))
