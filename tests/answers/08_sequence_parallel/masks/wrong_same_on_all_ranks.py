"""One seed for everything: every shard loses the same entries."""


def masks(seed, replicated_shape, sharded_shape, p):
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        torch.rand(shape, generator=generator) >= p for shape in (replicated_shape, sharded_shape)
    )
