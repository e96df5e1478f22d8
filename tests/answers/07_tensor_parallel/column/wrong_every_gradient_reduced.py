"""As in data parallelism: the weights' gradients are summed too, though the rows differ."""


def column_backward(grad_y, x, weight):
    gradients = grad_y @ weight, grad_y.T @ x, grad_y.sum(dim=0)
    for gradient in gradients:
        dist.all_reduce(gradient)
    return gradients
