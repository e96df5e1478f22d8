"""A token's kept rows overwrite each other."""


def add_to_residual(x, weights, chosen, mask, visit):
    tokens, choices = torch.where(mask)
    made = visit(x[tokens], chosen[tokens, choices])
    h = x.clone()
    h[tokens] = x[tokens] + weights[tokens, choices, None] * made
    return h
