"""Sorted by load, and dealt out one by one."""


def place_experts(chosen, num_experts):
    n = dist.get_world_size()
    loads = torch.bincount(chosen.flatten(), minlength=num_experts)
    dist.all_reduce(loads)
    order = loads.argsort(descending=True).tolist()
    return [order[rank::n] for rank in range(n)]
