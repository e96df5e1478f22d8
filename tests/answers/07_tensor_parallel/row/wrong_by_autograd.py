"""Asks autograd for the gradients."""


def row_backward(grad_y, x, weight):
    with torch.enable_grad():
        x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
        grads = torch.autograd.grad(x @ weight.T, [x, weight], grad_y)
    return *grads, grad_y.sum(dim=0)
