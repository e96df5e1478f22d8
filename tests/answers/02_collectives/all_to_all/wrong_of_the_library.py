"""The library's function, which the statement rules out."""

from byhand import collectives


def all_to_all(tensor):
    return collectives.all_to_all(tensor)
