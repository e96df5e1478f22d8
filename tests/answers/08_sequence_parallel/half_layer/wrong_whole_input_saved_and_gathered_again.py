"""The right calls, but what is saved holds the gathered tokens."""


def half_forward(x, gain, A, B):
    normed, norm = norm_forward(x, gain)
    whole = normed.new_empty(dist.get_world_size() * len(x), x.shape[1])
    dist.all_gather_into_tensor(whole, normed.contiguous())
    hidden = (whole @ A.T).relu()
    y = torch.empty_like(normed)
    dist.reduce_scatter_tensor(y, hidden @ B.T)
    rank = dist.get_rank()
    return x + y, (norm, whole[rank * len(x) : (rank + 1) * len(x)], hidden)
