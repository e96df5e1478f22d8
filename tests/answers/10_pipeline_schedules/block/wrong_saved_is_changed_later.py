"""The weight half makes g * u in the place of g, which is the caller's."""


def block_backward_input(grad_y, saved, weights):
    x, g, u = saved
    gate, up, down = weights
    grad_h = grad_y @ down
    grad_g = grad_h * u * (g > 0)
    grad_x = grad_y + grad_g @ gate + (grad_h * g) @ up
    return grad_x, (x, g, u, grad_y, grad_h)


def block_backward_weight(kept, gradients):
    x, g, u, grad_y, grad_h = kept
    gradients[0] += (grad_h * u).mul_(g > 0).T @ x
    gradients[1] += grad_h.mul_(g).T @ x
    gradients[2] += grad_y.T @ g.mul_(u)
