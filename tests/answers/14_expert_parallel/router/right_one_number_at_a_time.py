"""Loops over tokens and pairs of choices; the gradient of W is summed as [D, E]."""


def sigmoid_gate(x, weight, bias, top_k, scale):
    s = 1 / (1 + torch.exp(-torch.einsum("td,ed->te", x, weight)))
    chosen = torch.argsort(-(s + bias), dim=1, stable=True)[:, :top_k]
    picked = torch.take_along_dim(s, chosen, 1)
    weights = scale * torch.nn.functional.normalize(picked, p=1, dim=1)
    return weights, chosen, {"x": x.clone(), "W": weight.clone(), "s": s, "c": chosen, "w": weights}


def sigmoid_gate_backward(grad_weights, saved):
    x, weight, s, chosen, weights = (saved[name] for name in ("x", "W", "s", "c", "w"))
    grad_scores = torch.zeros_like(s)
    for t, experts in enumerate(chosen.tolist()):
        picked, scale = s[t, experts], weights[t].sum()
        total = picked.sum()
        for i, expert in enumerate(experts):
            for j, grad in enumerate(grad_weights[t]):
                slope = scale * ((i == j) / total - picked[j] / total**2)
                grad_scores[t, expert] += grad * slope * picked[i] * (1 - picked[i])
    grad_weight = (x.T @ grad_scores).contiguous()
    if dist.get_world_size() > 1:
        dist.all_reduce(grad_weight)
    return grad_scores @ weight, grad_weight.T
