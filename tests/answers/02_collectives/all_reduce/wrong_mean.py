"""A mean where a sum is asked."""


def all_reduce(tensor):
    flat = tensor.flatten()
    total = all_gather(reduce_scatter(flat), num_rows=flat.numel())
    return total.reshape(tensor.shape) / dist.get_world_size()
