"""The gradient is summed at both ends of the block: g's backward pass is not an all-reduce."""


def mlp_backward(grad_y, saved, shard):
    first, _, second, _ = shard
    x, hidden = saved
    grad_y = grad_y.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(grad_y)
    grad_hidden = (grad_y @ second) * (hidden > 0)
    grad_x = grad_hidden @ first
    dist.all_reduce(grad_x)
    gradients = [grad_hidden.T @ x, grad_hidden.sum(dim=0), grad_y.T @ hidden, grad_y.sum(dim=0)]
    return grad_x, gradients
