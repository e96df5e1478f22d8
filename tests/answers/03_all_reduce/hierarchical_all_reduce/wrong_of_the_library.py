"""The library's function, where the statement lends the two halves of a ring only."""

from byhand import all_reduce


def hierarchical_all_reduce(tensor, ranks_per_host):
    return all_reduce.hierarchical_all_reduce(tensor, ranks_per_host=ranks_per_host)
