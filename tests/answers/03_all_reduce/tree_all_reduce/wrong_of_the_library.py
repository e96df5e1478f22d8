"""The library's function, which the statement rules out."""

from byhand import all_reduce


def tree_all_reduce(tensor):
    return all_reduce.tree_all_reduce(tensor)
