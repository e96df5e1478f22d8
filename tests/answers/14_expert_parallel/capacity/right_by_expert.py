"""Expert by expert, all but the first rows fall; terms are added up by baddbmm."""


def within_capacity(chosen, num_experts, factor):
    num_tokens, top_k = chosen.shape
    limit = math.ceil(factor * (top_k * num_tokens / num_experts))
    mask = torch.ones(top_k, num_tokens, dtype=torch.bool)
    for expert in range(num_experts):
        choices, tokens = (chosen.T == expert).nonzero(as_tuple=True)
        mask[choices[limit:], tokens[limit:]] = False
    return mask.T


def add_to_residual(x, weights, chosen, mask, visit):
    num_tokens, top_k = chosen.shape
    places = mask.reshape(-1).nonzero().squeeze(1)
    numbers, order = chosen.reshape(-1)[places].sort(descending=True)
    places = places[order]
    terms = x.new_zeros(num_tokens * top_k, x.shape[1])
    terms[places] = visit(x.repeat_interleave(top_k, dim=0)[places], numbers)
    terms = terms.view(num_tokens, top_k, x.shape[1])
    return torch.baddbmm(x[:, None], weights[:, None], terms)[:, 0]
