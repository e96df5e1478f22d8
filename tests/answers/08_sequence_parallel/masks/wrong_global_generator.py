"""torch's own random numbers are seeded, and stay so."""


def masks(seed, replicated_shape, sharded_shape, p):
    torch.manual_seed(2000 * seed)
    common = torch.rand(replicated_shape) >= p
    torch.manual_seed(2000 * seed + 1 + dist.get_rank())
    return common, torch.rand(sharded_shape) >= p
