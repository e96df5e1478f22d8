"""Saves x alone and computes the hidden layer again on the way back; the sum travels meanwhile."""


def mlp_forward(x, shard):
    first, first_bias, second, second_bias = shard
    y = torch.addmm(first_bias, x, first.T).clamp(min=0) @ second.T
    pending = dist.all_reduce(y, async_op=True)
    pending.wait()
    y += second_bias
    return y, x


def mlp_backward(grad_y, saved, shard):
    first, first_bias, second, _ = shard
    before = torch.addmm(first_bias, saved, first.T)
    grad_before = torch.where(before > 0, grad_y @ second, 0.0)
    grad_x = grad_before @ first
    pending = dist.all_reduce(grad_x, async_op=True)
    gradients = [grad_before.T @ saved, grad_before.sum(dim=0)]
    gradients += [grad_y.T @ before.clamp(min=0), grad_y.sum(dim=0)]
    pending.wait()
    return grad_x, gradients
