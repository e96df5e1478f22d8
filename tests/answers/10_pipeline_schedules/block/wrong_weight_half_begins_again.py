"""Keeps little and multiplies grad_y by down a second time in the weight half."""


def block_backward_input(grad_y, saved, weights):
    x, g, u = saved
    gate, up, down = weights
    grad_h = grad_y @ down
    grad_x = grad_y + (grad_h * u * (g > 0)) @ gate + (grad_h * g) @ up
    return grad_x, (x, g, u, grad_y, down)


def block_backward_weight(kept, gradients):
    x, g, u, grad_y, down = kept
    grad_h = grad_y @ down
    gradients[0] += (grad_h * u * (g > 0)).T @ x
    gradients[1] += (grad_h * g).T @ x
    gradients[2] += grad_y.T @ (g * u)
