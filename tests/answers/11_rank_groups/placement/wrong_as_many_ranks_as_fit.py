"""A group stays inside when it has no more ranks than a host."""


def stays_inside(group, ranks_per_host):
    return len(group) <= ranks_per_host
