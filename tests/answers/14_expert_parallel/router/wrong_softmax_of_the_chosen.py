"""The gradient of a softmax over the chosen, as in the lecture."""


def sigmoid_gate_backward(grad_weights, saved):
    x, weight, scores, chosen, weights, *_ = saved
    mean = (grad_weights * weights).sum(dim=1, keepdim=True)
    grad_picked = weights * (grad_weights - mean)
    grad_scores = torch.zeros_like(scores).scatter(1, chosen, grad_picked)
    grad_weight = (grad_scores.T @ x).contiguous()
    dist.all_reduce(grad_weight)
    return grad_scores @ weight, grad_weight
