"""The residual is added once for each kept row."""


def add_to_residual(x, weights, chosen, mask, visit):
    tokens, choices = torch.where(mask)
    made = visit(x[tokens], chosen[tokens, choices])
    terms = x[tokens] + weights[tokens, choices, None] * made
    return torch.zeros_like(x).index_add_(0, tokens, terms)
