"""Whole tensors of ranks, and bytes by multiplication."""


def stays_inside(group, ranks_per_host):
    hosts = torch.tensor(group) // ranks_per_host
    return bool((hosts == hosts[0]).all())


def bytes_between_hosts(groups, ranks_per_host, payload):
    hosts = torch.tensor(groups) // ranks_per_host
    size = hosts.shape[1]
    crossings = (hosts != hosts.roll(-1, dims=1)).sum().item()
    return crossings * (2 * (size - 1) * payload) // size


def best_order(groups_of, ranks_per_host, payloads):
    best = None
    for order, groups in groups_of.items():
        cost = sum(bytes_between_hosts(groups[a], ranks_per_host, payloads[a]) for a in payloads)
        best = min(best or (cost, order), (cost, order))
    return best[1]
