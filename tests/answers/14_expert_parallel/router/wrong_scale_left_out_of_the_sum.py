"""The scale is forgotten where the weights enter."""


def sigmoid_gate_backward(grad_weights, saved):
    x, weight, scores, chosen, weights, total, scale = saved
    mean = (grad_weights * weights).sum(dim=1, keepdim=True)
    grad_picked = scale * (grad_weights - mean) / total
    grad_scores = torch.zeros_like(scores).scatter(1, chosen, grad_picked)
    grad_scores = grad_scores * scores * (1 - scores)
    grad_weight = (grad_scores.T @ x).contiguous()
    dist.all_reduce(grad_weight)
    return grad_scores @ weight, grad_weight
