"""The product of flags that say that all is well; a list for a tuple."""


def scaled_step(optimizer, gradients, scale):
    fine = torch.tensor([sum((g * 0).sum().item() for g in gradients) == 0], dtype=torch.int32)
    dist.all_reduce(fine, op=dist.ReduceOp.PRODUCT)
    if not fine:
        return False
    with torch.no_grad():
        for gradient in gradients:
            gradient.mul_(1 / scale)
    optimizer.step(gradients)
    return True


def next_scale(scale, steps, taken, growth, backoff, every):
    if not taken:
        return [scale * backoff, 0]
    steps += 1
    return [scale, steps] if steps < every else [scale * growth, 0]
