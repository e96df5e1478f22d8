"""Dropped rows travel as well, with a weight of zero."""


def add_to_residual(x, weights, chosen, mask, visit):
    tokens, choices = torch.where(torch.ones_like(mask))
    weights = weights * mask
    made = visit(x[tokens], chosen[tokens, choices])
    return x.index_add(0, tokens, weights[tokens, choices, None] * made)
