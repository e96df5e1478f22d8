"""A group stays inside when its ranks lie close together, wherever a node ends."""


def stays_inside(group, ranks_per_node):
    return group[-1] - group[0] < ranks_per_node
