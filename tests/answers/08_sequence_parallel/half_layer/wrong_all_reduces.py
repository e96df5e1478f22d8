"""Tensor parallelism as before, and a slice of its sum: all-reduces."""


def half_forward(x, gain, A, B):
    normed, norm = norm_forward(x, gain)
    whole = normed.new_empty(dist.get_world_size() * len(x), x.shape[1])
    dist.all_gather_into_tensor(whole, normed.contiguous())
    hidden = (whole @ A.T).relu()
    y = hidden @ B.T
    dist.all_reduce(y)
    return x + y.chunk(dist.get_world_size())[dist.get_rank()], (norm, normed, hidden)
