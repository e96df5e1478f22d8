"""Whole numbers, added up; gradients are copied back after a division in float64."""


def scaled_step(optimizer, gradients, scale):
    flags = [torch.isnan(g).any() | torch.isinf(g).any() for g in gradients]
    number = torch.tensor([sum(map(int, flags))])
    dist.all_reduce(number)
    taken = int(number) == 0
    if taken:
        for gradient in gradients:
            gradient.copy_(gradient.double() / scale)
        optimizer.step(gradients)
    return taken


def next_scale(scale, steps, taken, growth, backoff, every):
    steps = (steps + 1) * taken
    scale = scale * (1 if taken else backoff) * (growth if steps == every else 1)
    return scale, steps % every
