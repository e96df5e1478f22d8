"""The gradient passes where the ReLU was given exactly 0."""


def mlp_forward(x, shard):
    first, first_bias, second, second_bias = shard
    before = x @ first.T + first_bias
    y = before.relu() @ second.T
    dist.all_reduce(y)
    return y + second_bias, (x, before)


def mlp_backward(grad_y, saved, shard):
    first, _, second, _ = shard
    x, before = saved
    grad_hidden = (grad_y @ second) * (before >= 0)
    grad_x = grad_hidden @ first
    dist.all_reduce(grad_x)
    gradients = [grad_hidden.T @ x, grad_hidden.sum(dim=0)]
    return grad_x, [*gradients, grad_y.T @ before.relu(), grad_y.sum(dim=0)]
