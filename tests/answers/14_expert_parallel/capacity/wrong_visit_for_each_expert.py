"""Experts are visited one after the other, in a call for each."""


def add_to_residual(x, weights, chosen, mask, visit):
    h = x.clone()
    for number in chosen[mask].unique():
        tokens, choices = torch.where(mask & (chosen == number))
        made = visit(x[tokens], chosen[tokens, choices])
        h.index_add_(0, tokens, weights[tokens, choices, None] * made)
    return h
