"""All tokens' choices are gathered, where E numbers would do."""


def place_experts(chosen, num_experts):
    n = dist.get_world_size()
    every = [None] * n
    dist.all_gather_object(every, chosen)
    loads = torch.bincount(torch.cat(every).flatten(), minlength=num_experts)
    placement, filled = [[] for _ in range(n)], [0] * n
    for expert in loads.argsort(descending=True).tolist():
        free = [r for r in range(n) if len(placement[r]) < -(-num_experts // n)]
        rank = min(free, key=lambda r: filled[r])
        placement[rank].append(expert)
        filled[rank] += int(loads[expert])
    return placement
