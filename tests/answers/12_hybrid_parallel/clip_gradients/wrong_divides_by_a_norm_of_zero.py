"""Gradients that are all 0 are multiplied by max_norm / 0."""


def clip_gradients(groups, gradients, placements, max_norm):
    first_of_tp, first_stage = (dist.get_rank(groups[axis]) == 0 for axis in ("tp", "pp"))
    square = torch.zeros((), dtype=torch.float64)
    for gradient, placement in zip(gradients, placements, strict=True):
        if placement == "sharded" or (first_of_tp and (placement != "tied" or first_stage)):
            square += gradient.square().sum()
    dist.all_reduce(square, group=groups["tp-pp"])
    norm = square.sqrt().item()
    for gradient in gradients:
        gradient *= min(1.0, max_norm / norm)
    return norm
