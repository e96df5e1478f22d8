"""Ranks of a group rise, so its first and last tell whether it stays inside a node."""


def stays_inside(group, ranks_per_node):
    return group[0] // ranks_per_node == group[-1] // ranks_per_node
