"""All that a group sends counts as soon as it is on two hosts."""


def bytes_between_hosts(groups, ranks_per_host, payload):
    crossing = [g for g in groups if len({rank // ranks_per_host for rank in g}) > 1]
    return sum(2 * (len(group) - 1) * payload for group in crossing)
