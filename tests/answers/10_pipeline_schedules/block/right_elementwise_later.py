"""Keeps g, u and grad_h, and leaves the elementwise products to the weight half."""


def block_backward_input(grad_y, saved, weights):
    x, g, u = saved
    gate, up, down = weights
    grad_h = torch.mm(grad_y, down)
    grad_x = grad_y + (grad_h * u).masked_fill(g <= 0, 0) @ gate
    grad_x += (grad_h * g) @ up
    return grad_x, [x, g, u, grad_y, grad_h]


def block_backward_weight(kept, gradients):
    x, g, u, grad_y, grad_h = kept
    gradients[2] += grad_y.T @ (g * u)
    gradients[1] += (grad_h * g).T @ x
    gradients[0] += (grad_h * u).masked_fill(g <= 0, 0).T @ x
