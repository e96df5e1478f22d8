"""The weights are a softmax of the logarithms: 1 - s and the scale are all that is new."""


def sigmoid_gate(x, weight, bias, top_k, scale):
    raw = x @ weight.T
    chosen = (raw.sigmoid() + bias).argsort(dim=1, descending=True)[:, :top_k]
    logs = torch.nn.functional.logsigmoid(raw).gather(1, chosen)
    share = logs.softmax(dim=1)
    return scale * share, chosen, {"raw": raw, "share": share, "all": (x, weight, chosen, scale)}


def sigmoid_gate_backward(grad_weights, saved):
    x, weight, chosen, scale = saved["all"]
    share = saved["share"]
    grad_logs = scale * share * (grad_weights - (grad_weights * share).sum(dim=1, keepdim=True))
    grad_raw = torch.zeros_like(saved["raw"])
    for j in range(chosen.shape[1]):
        here = chosen[:, j, None]
        slope = (-saved["raw"]).sigmoid().gather(1, here)[:, 0]
        grad_raw.scatter_add_(1, here, (grad_logs[:, j] * slope)[:, None])
    grad_weight = torch.einsum("te,td->ed", grad_raw, x).contiguous()
    dist.all_reduce(grad_weight)
    return grad_raw @ weight, grad_weight
