"""The least of flags that say that all is well; gradients are divided before anybody knows."""


def scaled_step(optimizer, gradients, scale):
    well = torch.ones((), dtype=torch.uint8)
    for gradient in gradients:
        well &= (gradient - gradient == 0).all()
        gradient /= scale
    pending = dist.all_reduce(well, op=dist.ReduceOp.MIN, async_op=True)
    pending.wait()
    if well:
        optimizer.step(gradients)
    return well == 1
