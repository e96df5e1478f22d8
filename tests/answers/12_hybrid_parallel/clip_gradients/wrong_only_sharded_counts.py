"""Norms, biases and the table are left out."""


def clip_gradients(groups, gradients, placements, max_norm):
    square = torch.zeros((), dtype=torch.float64)
    for gradient, placement in zip(gradients, placements, strict=True):
        counts = placement == "sharded"
        square += counts * gradient.square().sum()
    dist.all_reduce(square, group=groups["tp-pp"])
    norm = square.sqrt().item()
    if norm > max_norm:
        for gradient in gradients:
            gradient *= max_norm / norm
    return norm
