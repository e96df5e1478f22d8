"""The biased scores become weights, too."""


def sigmoid_gate(x, weight, bias, top_k, scale):
    scores = (x @ weight.T).sigmoid()
    chosen = (scores + bias).topk(top_k, dim=1).indices
    picked = (scores + bias).gather(1, chosen)
    total = picked.sum(dim=1, keepdim=True)
    weights = scale * picked / total
    return weights, chosen, (x, weight, scores, chosen, weights, total, scale)
