"""The input half computes the weights' gradients too, and the other one only adds them."""


def block_backward_input(grad_y, saved, weights):
    x, g, u = saved
    gate, up, down = weights
    grad_h = grad_y @ down
    grad_g, grad_u = grad_h * u * (g > 0), grad_h * g
    grad_x = grad_y + grad_g @ gate + grad_u @ up
    return grad_x, [grad_g.T @ x, grad_u.T @ x, grad_y.T @ (g * u)]


def block_backward_weight(kept, gradients):
    for gradient, mine in zip(gradients, kept):
        gradient += mine
