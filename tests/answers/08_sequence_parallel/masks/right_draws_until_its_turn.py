"""One generator for a seed: the first mask is for all, the next for rank 0, and so on."""


def masks(seed, replicated_shape, sharded_shape, p):
    generator = torch.Generator().manual_seed(seed)
    common = torch.rand(replicated_shape, generator=generator)
    for _ in range(dist.get_rank() + 1):
        own = torch.rand(sharded_shape, generator=generator)
    return common >= p, own >= p
