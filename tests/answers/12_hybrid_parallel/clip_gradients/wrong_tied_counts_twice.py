"""The table counts on the first stage and on the last."""


def clip_gradients(groups, gradients, placements, max_norm):
    first_of_tp = dist.get_rank(groups["tp"]) == 0
    square = torch.zeros((), dtype=torch.float64)
    for gradient, placement in zip(gradients, placements, strict=True):
        counts = placement == "sharded" or first_of_tp
        square += counts * gradient.square().sum()
    dist.all_reduce(square, group=groups["tp-pp"])
    norm = square.sqrt().item()
    if norm > max_norm:
        for gradient in gradients:
            gradient *= max_norm / norm
    return norm
