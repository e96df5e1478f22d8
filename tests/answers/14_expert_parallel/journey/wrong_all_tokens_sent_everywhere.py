"""All rows go to all ranks by all-to-all; each keeps those for its experts."""


def to_experts(x, chosen, home):
    n, numbers = dist.get_world_size(), chosen.flatten()
    sizes = numbers.new_empty(n)
    dist.all_to_all_single(sizes, numbers.new_full((n,), len(numbers)))
    rows = x.repeat_interleave(chosen.shape[1], dim=0)
    both = torch.cat([rows, numbers[:, None].to(x.dtype)], dim=1).repeat(n, 1)
    every = x.new_empty(int(sizes.sum()), x.shape[1] + 1)
    dist.all_to_all_single(every, both, sizes.tolist(), [len(numbers)] * n)
    wanted = every[:, -1].long()
    here = home[wanted] == dist.get_rank()
    return every[here, :-1], wanted[here], (here, sizes.tolist(), home[numbers])


def from_experts(made, weights, saved):
    here, sizes, homes = saved
    n = dist.get_world_size()
    leaving = made.new_zeros(len(here), made.shape[1])
    leaving[here] = made
    back = made.new_empty(n * len(homes), made.shape[1])
    dist.all_to_all_single(back, leaving, [len(homes)] * n, sizes)
    mine = back.view(n, len(homes), -1).sum(dim=0).view(*weights.shape, -1)
    return (weights[..., None] * mine).sum(dim=1)
