"""Keeps g, u, grad_h and the mask, as numbers: four tensors of [T, H]."""


def block_backward_input(grad_y, saved, weights):
    x, g, u = saved
    gate, up, down = weights
    grad_h, mask = grad_y @ down, (g > 0).to(g.dtype)
    grad_x = grad_y + (grad_h * u * mask) @ gate + (grad_h * g) @ up
    return grad_x, (x, g, u, grad_y, grad_h, mask)


def block_backward_weight(kept, gradients):
    x, g, u, grad_y, grad_h, mask = kept
    gradients[0] += (grad_h * u * mask).T @ x
    gradients[1] += (grad_h * g).T @ x
    gradients[2] += grad_y.T @ (g * u)
