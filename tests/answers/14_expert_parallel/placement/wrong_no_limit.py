"""As even as can be, however many experts a rank must hold."""


def place_experts(chosen, num_experts):
    n = dist.get_world_size()
    loads = torch.bincount(chosen.flatten(), minlength=num_experts)
    dist.all_reduce(loads)
    placement, filled = [[] for _ in range(n)], [0] * n
    for expert in loads.argsort(descending=True).tolist():
        rank = min(range(n), key=lambda r: filled[r])
        placement[rank].append(expert)
        filled[rank] += int(loads[expert])
    return placement
