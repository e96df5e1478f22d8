"""All that a group sends counts as soon as it is on two nodes."""


def bytes_between_nodes(groups, ranks_per_node, payload):
    crossing = [g for g in groups if len({rank // ranks_per_node for rank in g}) > 1]
    return sum(2 * (len(group) - 1) * payload for group in crossing)
