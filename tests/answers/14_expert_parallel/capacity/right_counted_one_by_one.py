"""A loop over all rows, and one over the kept ones."""


def within_capacity(chosen, num_experts, factor):
    num_tokens, top_k = chosen.shape
    left = [math.ceil(factor * num_tokens * top_k / num_experts)] * num_experts
    mask = torch.zeros_like(chosen, dtype=torch.bool)
    for choice in range(top_k):
        for token in range(num_tokens):
            expert = int(chosen[token, choice])
            mask[token, choice] = left[expert] > 0
            left[expert] -= 1
    return mask


def add_to_residual(x, weights, chosen, mask, visit):
    places = mask.flatten().nonzero()[:, 0].flip(0)
    tokens = places // chosen.shape[1]
    made = visit(x[tokens], chosen.flatten()[places])
    h = x.clone()
    for token, place, row in zip(tokens.tolist(), places.tolist(), made, strict=True):
        h[token] += weights.flatten()[place] * row
    return h
