"""Hosts are runs of sorted ranks; the rate is a minimum over all groups."""


def ring_seconds(num_bytes, groups, machine):
    def slowest(group):
        hosts = [rank // machine.ranks_per_host for rank in sorted(group)]
        runs = [len(list(same)) for _, same in itertools.groupby(hosts)]
        return math.inf if len(runs) == 1 else min(runs) * machine.card

    n = len(groups[0])
    pace = min([machine.inside, *map(slowest, groups)])
    return sum(num_bytes / n / pace + 2.5e-6 for _ in range(n - 1))
