"""The terms of grad_x are gathered on every rank and added there: n-1 terms arrive, not two."""


def column_backward(grad_y, x, weight):
    grad_x = grad_y @ weight
    terms = [torch.empty_like(grad_x) for _ in range(dist.get_world_size())]
    dist.all_gather(terms, grad_x)
    return sum(terms), grad_y.T @ x, grad_y.sum(dim=0)
