"""0 · g is nan where g is not finite, and a sum of these says it all."""


def scaled_step(optimizer, gradients, scale):
    nothing = torch.zeros((), dtype=torch.float64)
    for gradient in gradients:
        nothing += (gradient * 0).sum()
    dist.all_reduce(nothing)
    if nothing != 0:
        return nothing == 0
    for gradient in gradients:
        gradient /= scale
    optimizer.step(gradients)
    return nothing == 0


def next_scale(scale, steps, taken, growth, backoff, every):
    factor = (growth if (steps + 1) % every == 0 else 1) if taken else backoff
    return scale * factor, 0 if factor != 1 else steps + 1
