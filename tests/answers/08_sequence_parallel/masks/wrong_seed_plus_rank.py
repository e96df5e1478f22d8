"""Rank 1 with seed 7 draws what rank 0 draws with seed 8."""


def masks(seed, replicated_shape, sharded_shape, p):
    common = torch.Generator().manual_seed(10_000_000 + seed)
    own = torch.Generator().manual_seed(seed + dist.get_rank())
    drawn = torch.rand(replicated_shape, generator=common), torch.rand(sharded_shape, generator=own)
    return drawn[0] >= p, drawn[1] >= p
