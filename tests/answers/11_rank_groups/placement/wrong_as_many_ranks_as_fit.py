"""A group stays inside when it has no more ranks than a node."""


def stays_inside(group, ranks_per_node):
    return len(group) <= ranks_per_node
