"""A group stays inside when its ranks lie close together, wherever a host ends."""


def stays_inside(group, ranks_per_host):
    return group[-1] - group[0] < ranks_per_host
