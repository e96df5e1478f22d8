"""Tokens' gradients are summed over ranks, though each rank has its own tokens."""


def sigmoid_gate_backward(grad_weights, saved):
    x, weight, scores, chosen, weights, total, scale = saved
    mean = (grad_weights * weights).sum(dim=1, keepdim=True)
    grad_picked = (scale * grad_weights - mean) / total
    grad_scores = torch.zeros_like(scores).scatter(1, chosen, grad_picked)
    grad_scores = grad_scores * scores * (1 - scores)
    grad_weight = (grad_scores.T @ x).contiguous()
    dist.all_reduce(grad_weight)
    grad_x = (grad_scores @ weight).contiguous()
    dist.all_reduce(grad_x)
    return grad_x, grad_weight
