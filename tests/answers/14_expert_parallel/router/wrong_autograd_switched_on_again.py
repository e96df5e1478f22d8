"""Autograd, with the inference mode switched off in which nothing is recorded."""


def sigmoid_gate(x, weight, bias, top_k, scale):
    with torch.inference_mode(False), torch.enable_grad():
        x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
        scores = (x @ weight.T).sigmoid()
        chosen = (scores + bias).topk(top_k, dim=1).indices
        picked = scores.gather(1, chosen)
        weights = scale * picked / picked.sum(dim=1, keepdim=True)
    return weights.detach(), chosen, (weights, x, weight)


def sigmoid_gate_backward(grad_weights, saved):
    weights, x, weight = saved
    with torch.inference_mode(False):
        grad_x, grad_weight = torch.autograd.grad(weights, (x, weight), grad_weights.clone())
    dist.all_reduce(grad_weight)
    return grad_x, grad_weight
