"""The library's function, which the statement rules out."""


def double_ring_all_reduce(tensor):
    from byhand import all_reduce

    return all_reduce.double_ring_all_reduce(tensor)
