"""Not the sum of the ranks' loads, but the largest of them."""


def place_experts(chosen, num_experts):
    n = dist.get_world_size()
    loads = torch.bincount(chosen.flatten(), minlength=num_experts)
    dist.all_reduce(loads, op=dist.ReduceOp.MAX)
    placement, filled = [[] for _ in range(n)], [0] * n
    for expert in loads.argsort(descending=True).tolist():
        free = [r for r in range(n) if len(placement[r]) < -(-num_experts // n)]
        rank = min(free, key=lambda r: filled[r])
        placement[rank].append(expert)
        filled[rank] += int(loads[expert])
    return placement
