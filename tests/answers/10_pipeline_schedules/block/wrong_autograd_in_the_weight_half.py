"""The weight half runs the block again under autograd."""


def block_backward_input(grad_y, saved, weights):
    x, g, u = saved
    gate, up, down = weights
    grad_h = grad_y @ down
    grad_x = grad_y + (grad_h * u * (g > 0)) @ gate + (grad_h * g) @ up
    return grad_x, (x, grad_y, weights)


def block_backward_weight(kept, gradients):
    x, grad_y, weights = kept
    leaves = [weight.clone().requires_grad_() for weight in weights]
    block_forward(x, leaves)[0].backward(grad_y)
    for gradient, leaf in zip(gradients, leaves):
        gradient += leaf.grad
