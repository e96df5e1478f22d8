"""A heap for the rule, then experts change places as long as that helps."""

import heapq
import itertools


def place_experts(chosen, num_experts):
    n = dist.get_world_size()
    loads = torch.zeros(num_experts, dtype=torch.int64)
    for expert in chosen.reshape(-1).tolist():
        loads[expert] += 1
    dist.all_reduce(loads)
    rows, places = loads.tolist(), math.ceil(num_experts / n)
    placement, heap = [set() for _ in range(n)], [(0, rank) for rank in range(n)]
    for expert in sorted(range(num_experts), key=lambda e: (-rows[e], e)):
        filled, rank = heapq.heappop(heap)
        placement[rank].add(expert)
        if len(placement[rank]) < places:
            heapq.heappush(heap, (filled + rows[expert], rank))

    def load(some):
        return sum(rows[e] for e in some)

    better = True
    while better:
        better = False
        for a, b in itertools.permutations(placement, 2):
            for one, other in itertools.product(sorted(a), sorted(b)):
                if load(a) - rows[one] + rows[other] < load(a) > load(b) + rows[one] - rows[other]:
                    a.symmetric_difference_update({one, other})
                    b.symmetric_difference_update({one, other})
                    better = True
                    break
    return [sorted(some) for some in placement]
