"""Autograd, where none is allowed."""


def sigmoid_gate(x, weight, bias, top_k, scale):
    with torch.enable_grad():
        x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
        scores = (x @ weight.T).sigmoid()
        chosen = (scores + bias).topk(top_k, dim=1).indices
        picked = scores.gather(1, chosen)
        weights = scale * picked / picked.sum(dim=1, keepdim=True)
    return weights.detach(), chosen, (weights, x, weight)


def sigmoid_gate_backward(grad_weights, saved):
    weights, x, weight = saved
    grad_x, grad_weight = torch.autograd.grad(weights, (x, weight), grad_weights)
    dist.all_reduce(grad_weight)
    return grad_x, grad_weight
