"""The terms are added to the caller's x."""


def add_to_residual(x, weights, chosen, mask, visit):
    tokens, choices = torch.where(mask)
    made = visit(x[tokens], chosen[tokens, choices])
    return x.index_add_(0, tokens, weights[tokens, choices, None] * made)
