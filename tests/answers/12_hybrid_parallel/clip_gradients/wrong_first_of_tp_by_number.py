"""The first rank of tp is taken from its number, which holds in one order of the axes only."""


def clip_gradients(groups, gradients, placements, max_norm):
    first_of_tp = dist.get_rank() % dist.get_world_size(groups["tp"]) == 0
    first_stage = dist.get_rank(groups["pp"]) == 0
    square = torch.zeros((), dtype=torch.float64)
    for gradient, placement in zip(gradients, placements, strict=True):
        if placement == "sharded" or (first_of_tp and (placement != "tied" or first_stage)):
            square += gradient.square().sum()
    dist.all_reduce(square, group=groups["tp-pp"])
    norm = square.sqrt().item()
    if norm > max_norm:
        for gradient in gradients:
            gradient *= max_norm / norm
    return norm
