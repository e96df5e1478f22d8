"""Ranks of a group rise, so its first and last tell whether it stays inside a host."""


def stays_inside(group, ranks_per_host):
    return group[0] // ranks_per_host == group[-1] // ranks_per_host
