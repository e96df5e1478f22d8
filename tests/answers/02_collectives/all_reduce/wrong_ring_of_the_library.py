"""The library's ring, which lecture 03 uses: the statement lends two functions only."""

from byhand.all_reduce import ring_all_reduce


def all_reduce(tensor):
    return ring_all_reduce(tensor)
