"""Only tokens with a kept row are written: the others' residual is lost."""


def add_to_residual(x, weights, chosen, mask, visit):
    tokens, choices = torch.where(mask)
    made = visit(x[tokens], chosen[tokens, choices])
    h = torch.zeros_like(x)
    h[tokens] = x[tokens]
    return h.index_add_(0, tokens, weights[tokens, choices, None] * made)
