"""Leaves what is between the products to autograd."""


def block_backward_input(grad_y, saved, weights):
    x, g, u = saved
    gate, up, down = weights
    z, v = g.detach().requires_grad_(), u.detach().requires_grad_()
    with torch.enable_grad():
        h = z.relu() * v
    grad_g, grad_u = torch.autograd.grad(h, (z, v), grad_y @ down)
    grad_x = grad_y + grad_g @ gate + grad_u @ up
    return grad_x, (x, h.detach(), grad_y, grad_g, grad_u)


def block_backward_weight(kept, gradients):
    x, h, grad_y, grad_g, grad_u = kept
    for gradient, grad, given in zip(gradients, (grad_g, grad_u, grad_y), (x, x, h), strict=True):
        gradient += grad.T @ given
