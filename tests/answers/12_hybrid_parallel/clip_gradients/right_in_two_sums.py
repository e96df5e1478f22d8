"""First over tp, then over the stages."""


def clip_gradients(groups, gradients, placements, max_norm):
    first_of_tp, first_stage = (dist.get_rank(groups[axis]) == 0 for axis in ("tp", "pp"))
    square = torch.zeros(1, dtype=torch.float64)
    for gradient, placement in zip(gradients, placements, strict=True):
        if placement == "sharded" or (first_of_tp and (placement != "tied" or first_stage)):
            square += gradient.square().sum()
    dist.all_reduce(square, group=groups["tp"])
    dist.all_reduce(square, group=groups["pp"])
    norm = square.sqrt().item()
    for gradient in gradients:
        gradient.mul_(max_norm / max(norm, max_norm))
    return norm
