"""Each rank draws what comes: the replicated mask differs."""


def masks(seed, replicated_shape, sharded_shape, p):
    return torch.rand(replicated_shape) >= p, torch.rand(sharded_shape) >= p
