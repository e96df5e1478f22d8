"""What is kept lies in a global and stays there when the weight half is done."""

STORE = {}


def block_backward_input(grad_y, saved, weights):
    x, g, u = saved
    gate, up, down = weights
    grad_h = grad_y @ down
    grad_g, grad_u = grad_h * u * (g > 0), grad_h * g
    grad_x = grad_y + grad_g @ gate + grad_u @ up
    STORE[len(STORE)] = x, g * u, grad_y, grad_g, grad_u
    return grad_x, len(STORE) - 1


def block_backward_weight(kept, gradients):
    x, h, grad_y, grad_g, grad_u = STORE[kept]
    gradients[0] += grad_g.T @ x
    gradients[1] += grad_u.T @ x
    gradients[2] += grad_y.T @ h
