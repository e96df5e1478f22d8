"""The last rank of a ring sends nothing back to the first."""


def bytes_between_hosts(groups, ranks_per_host, payload):
    total = 0
    for group in groups:
        for i in range(1, len(group)):
            if group[i] // ranks_per_host != group[i - 1] // ranks_per_host:
                total += 2 * (len(group) - 1) * payload // len(group)
    return total
