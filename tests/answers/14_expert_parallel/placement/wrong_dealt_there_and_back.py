"""Sorted by load, and dealt out there and back: good, but not as good as asked."""


def place_experts(chosen, num_experts):
    n = dist.get_world_size()
    loads = torch.bincount(chosen.flatten(), minlength=num_experts)
    dist.all_reduce(loads)
    placement = [[] for _ in range(n)]
    for place, expert in enumerate(loads.argsort(descending=True).tolist()):
        turn, rank = divmod(place, n)
        placement[rank if turn % 2 == 0 else n - 1 - rank].append(expert)
    return placement
