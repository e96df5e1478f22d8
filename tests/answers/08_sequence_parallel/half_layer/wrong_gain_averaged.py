"""The gain's gradient is averaged over the ranks."""


def half_backward(grad_y, saved, gain, A, B):
    norm, normed, hidden = saved
    whole_grad = grad_y.new_empty(dist.get_world_size() * len(grad_y), grad_y.shape[1])
    whole = torch.empty_like(whole_grad)
    dist.all_gather_into_tensor(whole_grad, grad_y.contiguous())
    grad_B = whole_grad.T @ hidden
    grad_hidden = (whole_grad @ B) * (hidden > 0)
    grad_normed = torch.empty_like(normed)
    dist.reduce_scatter_tensor(grad_normed, grad_hidden @ A)
    dist.all_gather_into_tensor(whole, normed.contiguous())
    grad_x, grad_gain = norm_backward(grad_normed, norm, gain)
    dist.all_reduce(grad_gain)
    grad_gain /= dist.get_world_size()
    return grad_x + grad_y, [grad_gain, grad_hidden.T @ whole, grad_B]
