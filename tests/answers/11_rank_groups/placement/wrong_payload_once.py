"""Each step of the ring is taken to carry the payload once."""


def bytes_between_nodes(groups, ranks_per_node, payload):
    pairs = [pair for group in groups for pair in zip(group, group[1:] + group[:1])]
    return payload * sum(a // ranks_per_node != b // ranks_per_node for a, b in pairs)
