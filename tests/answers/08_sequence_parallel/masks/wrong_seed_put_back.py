"""torch's seed is put back, but not how far its random numbers had gone."""


def masks(seed, replicated_shape, sharded_shape, p):
    before = torch.initial_seed()
    torch.manual_seed(2000 * seed)
    common = torch.rand(replicated_shape) >= p
    torch.manual_seed(2000 * seed + 1 + dist.get_rank())
    own = torch.rand(sharded_shape) >= p
    torch.manual_seed(before)
    return common, own
