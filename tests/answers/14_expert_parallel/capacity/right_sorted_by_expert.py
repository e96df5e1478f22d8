"""Places are counted in the sorted list, and terms are added up over [T, k, D]."""


def within_capacity(chosen, num_experts, factor):
    limit = -int(-factor * chosen.numel() // num_experts)
    flat = chosen.T.reshape(-1)
    order = flat.argsort(stable=True)
    first = torch.searchsorted(flat[order].contiguous(), torch.arange(num_experts))
    places = torch.empty_like(flat)
    places[order] = torch.arange(len(flat)) - first[flat[order]]
    return (places < limit).view(chosen.T.shape).T


def add_to_residual(x, weights, chosen, mask, visit):
    made = x.new_zeros(*chosen.shape, x.shape[1])
    rows = x[:, None].expand_as(made)
    made[mask] = visit(rows[mask], chosen[mask])
    return x + (weights[..., None] * made).sum(dim=1)
