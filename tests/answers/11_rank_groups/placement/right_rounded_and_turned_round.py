"""Floats that are rounded at the end; the orders are looked up by what they cost."""


def bytes_between_hosts(groups, ranks_per_host, payload):
    total = 0.0
    for group in groups:
        n = len(group)
        for i, rank in enumerate(group):
            if rank // ranks_per_host != group[i - 1] // ranks_per_host:
                total += 2 * (n - 1) / n * payload
    return round(total)


def best_order(groups_of, ranks_per_host, payloads):
    by_cost = {}
    for order, groups in groups_of.items():
        costs = [bytes_between_hosts(g, ranks_per_host, payloads[a]) for a, g in groups.items()]
        by_cost[sum(costs)] = order
    return by_cost[min(by_cost)]
