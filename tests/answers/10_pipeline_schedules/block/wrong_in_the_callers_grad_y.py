"""Adds grad_x up in the caller's grad_y."""


def block_backward_input(grad_y, saved, weights):
    x, g, u = saved
    gate, up, down = weights
    grad_h, before = grad_y @ down, grad_y.clone()
    grad_g, grad_u = grad_h * u * (g > 0), grad_h * g
    grad_y += grad_g @ gate
    grad_y += grad_u @ up
    return grad_y, (x, g * u, before, grad_g, grad_u)


def block_backward_weight(kept, gradients):
    x, h, grad_y, grad_g, grad_u = kept
    gradients[0] += grad_g.T @ x
    gradients[1] += grad_u.T @ x
    gradients[2] += grad_y.T @ h
