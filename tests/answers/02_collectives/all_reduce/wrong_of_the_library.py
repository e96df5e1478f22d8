"""The library's all_reduce, where the statement lends its two halves only."""

from byhand import collectives


def all_reduce(tensor):
    return collectives.all_reduce(tensor)
