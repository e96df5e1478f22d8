"""Asks autograd for the gradients."""


def column_backward(grad_y, x, weight):
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    with torch.enable_grad():
        (x @ weight.T).backward(grad_y)
    dist.all_reduce(x.grad)
    return x.grad, weight.grad, grad_y.sum(dim=0)
