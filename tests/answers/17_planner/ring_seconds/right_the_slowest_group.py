"""Each group's ring is timed alone, and the slowest is the answer."""


def ring_seconds(num_bytes, groups, machine):
    def alone(group):
        n, hosts = len(group), [rank // machine.ranks_per_host for rank in group]
        cards = min(hosts.count(host) for host in hosts)
        rate = machine.inside
        if cards < n:
            rate = min(rate, cards * machine.card)
        return (n - 1) * num_bytes / n / rate + (n - 1) * ALPHA

    return max(map(alone, groups))
