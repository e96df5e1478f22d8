"""The weights of the rows that are left are made to add up to one again."""


def add_to_residual(x, weights, chosen, mask, visit):
    tokens, choices = torch.where(mask)
    weights = weights * mask
    weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-9)
    made = visit(x[tokens], chosen[tokens, choices])
    return x.index_add(0, tokens, weights[tokens, choices, None] * made)
