"""Norms are added instead of their squares."""


def clip_gradients(groups, gradients, placements, max_norm):
    first_of_tp, first_stage = (dist.get_rank(groups[axis]) == 0 for axis in ("tp", "pp"))
    square = torch.zeros((), dtype=torch.float64)
    for gradient, placement in zip(gradients, placements, strict=True):
        counts = placement == "sharded" or (first_of_tp and (placement != "tied" or first_stage))
        square += counts * gradient.square().sum()
    square = square.sqrt()
    dist.all_reduce(square, group=groups["tp-pp"])
    norm = square.item()
    if norm > max_norm:
        for gradient in gradients:
            gradient *= max_norm / norm
    return norm
