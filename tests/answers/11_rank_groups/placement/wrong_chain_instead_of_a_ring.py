"""The last rank of a ring sends nothing back to the first."""


def bytes_between_nodes(groups, ranks_per_node, payload):
    total = 0
    for group in groups:
        for i in range(1, len(group)):
            if group[i] // ranks_per_node != group[i - 1] // ranks_per_node:
                total += 2 * (len(group) - 1) * payload // len(group)
    return total
