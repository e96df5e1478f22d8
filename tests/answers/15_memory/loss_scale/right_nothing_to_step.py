"""A rank without gradients calls no optimizer; finite gradients are counted, and the least wins."""


def scaled_step(optimizer, gradients, scale):
    share = [g.isfinite().double().mean() for g in gradients]
    least = torch.stack([torch.ones((), dtype=torch.float64), *share]).min()
    dist.all_reduce(least, dist.ReduceOp.MIN)
    if least < 1:
        return False
    if gradients:
        torch._foreach_div_(gradients, scale)
        optimizer.step(gradients)
    return True


def next_scale(scale, steps, taken, growth, backoff, every):
    grown, steps = divmod(steps + 1, every) if taken else (0, 0)
    return scale * growth**grown * backoff ** (not taken), steps
