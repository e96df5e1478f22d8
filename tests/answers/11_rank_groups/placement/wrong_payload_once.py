"""Each step of the ring is taken to carry the payload once."""


def bytes_between_hosts(groups, ranks_per_host, payload):
    pairs = [pair for group in groups for pair in zip(group, group[1:] + group[:1])]
    return payload * sum(a // ranks_per_host != b // ranks_per_host for a, b in pairs)
