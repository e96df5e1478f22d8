"""Only x is saved: backward computes the hidden features again from the tokens that it gathers."""


def all_of(shard):
    whole = torch.empty(dist.get_world_size() * len(shard), shard.shape[1], dtype=shard.dtype)
    ALL_GATHER(whole, shard.contiguous())
    return whole


def half_forward(x, gain, A, B):
    terms = torch.relu(all_of(norm_forward(x, gain)[0]) @ A.T) @ B.T
    y = torch.empty(x.shape, dtype=x.dtype)
    REDUCE_SCATTER(y, terms)
    y += x
    return y, x


def half_backward(grad_y, x, gain, A, B):
    normed, norm = norm_forward(x, gain)
    u = all_of(normed)
    hidden = torch.relu(u @ A.T)
    whole = all_of(grad_y)
    grad_hidden = (whole @ B) * (hidden > 0)
    grad_u = torch.empty(x.shape, dtype=x.dtype)
    REDUCE_SCATTER(grad_u, grad_hidden @ A)
    grad_x, grad_gain = norm_backward(grad_u, norm, gain)
    dist.all_reduce(grad_gain)
    return grad_x + grad_y, (grad_gain, grad_hidden.T @ u, whole.T @ hidden)
