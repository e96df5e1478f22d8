"""What is kept is one tensor of [T, 2 D + 3 H], and what it holds is cut out later."""


def block_backward_input(grad_y, saved, weights):
    x, g, u = saved
    gate, up, down = weights
    grad_h = torch.einsum("td,dh->th", grad_y, down)
    grad_g = torch.ops.aten.threshold_backward(grad_h * u, g, 0)
    grad_u = grad_h * g
    grad_x = torch.cat([grad_g, grad_u], 1) @ torch.cat([gate, up])
    kept = torch.cat([x, grad_y, g * u, grad_g, grad_u], 1)
    return grad_x.add_(grad_y), [kept, x.shape[1], g.shape[1]]


def block_backward_weight(kept, gradients):
    everything, features, hidden = kept
    x, grad_y, h, grad_g, grad_u = everything.split([features] * 2 + [hidden] * 3, 1)
    gradients[0].add_(torch.matmul(grad_g.T, x))
    gradients[1].add_(torch.matmul(grad_u.T, x))
    gradients[2].add_(torch.matmul(h.T, grad_y).T)
