"""What several ranks hold counts several times."""


def clip_gradients(groups, gradients, placements, max_norm):
    square = torch.zeros((), dtype=torch.float64)
    for gradient in gradients:
        square += gradient.square().sum()
    dist.all_reduce(square, group=groups["tp-pp"])
    norm = square.sqrt().item()
    if norm > max_norm:
        for gradient in gradients:
            gradient *= max_norm / norm
    return norm
