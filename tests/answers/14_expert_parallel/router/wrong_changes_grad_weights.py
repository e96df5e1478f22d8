"""The caller's gradient is scaled in place."""


def sigmoid_gate_backward(grad_weights, saved):
    x, weight, scores, chosen, weights, total, scale = saved
    grad_weights *= scale
    mean = (grad_weights * weights).sum(dim=1, keepdim=True) / scale
    grad_picked = (grad_weights - mean) / total
    grad_scores = torch.zeros_like(scores).scatter(1, chosen, grad_picked)
    grad_scores = grad_scores * scores * (1 - scores)
    grad_weight = (grad_scores.T @ x).contiguous()
    dist.all_reduce(grad_weight)
    return grad_scores @ weight, grad_weight
