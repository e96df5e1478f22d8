"""Every placement there is, and the best of them."""


def place_experts(chosen, num_experts):
    import itertools

    n = dist.get_world_size()
    loads = torch.bincount(chosen.flatten(), minlength=num_experts).double()
    dist.all_reduce(loads)
    homes = torch.tensor(list(itertools.product(range(n), repeat=num_experts)))
    on = torch.nn.functional.one_hot(homes, n).double()  # [placements, E, n]
    fits = on.sum(dim=1).amax(dim=1) <= math.ceil(num_experts / n)
    busiest = torch.einsum("pen,e->pn", on, loads).amax(dim=1)
    best = homes[busiest.where(fits, math.inf).argmin()]
    return [(best == rank).nonzero()[:, 0].tolist() for rank in range(n)]
