"""Appends the first rank to the caller's group, to close the ring."""


def bytes_between_hosts(groups, ranks_per_host, payload):
    total = 0
    for group in groups:
        n = len(group)
        group.append(group[0])
        for i in range(n):
            if group[i] // ranks_per_host != group[i + 1] // ranks_per_host:
                total += 2 * (n - 1) * payload // n
    return total
