"""Keeps the mask as bools beside its three tensors of [T, H]."""


def block_backward_input(grad_y, saved, weights):
    x, g, u = saved
    gate, up, down = weights
    grad_h = grad_y @ down
    mask = g > 0
    grad_g, grad_u = grad_h * u, grad_h * g
    grad_x = grad_y + (grad_g * mask) @ gate + grad_u @ up
    return grad_x, (x, g * u, grad_y, grad_g, grad_u, mask)


def block_backward_weight(kept, gradients):
    x, h, grad_y, grad_g, grad_u, mask = kept
    gradients[0] += (grad_g * mask).T @ x
    gradients[1] += grad_u.T @ x
    gradients[2] += grad_y.T @ h
