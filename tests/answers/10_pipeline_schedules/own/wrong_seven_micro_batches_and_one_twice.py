"""Micro-batch 0 is done twice, and 7 never."""


def own_schedule():
    order = [(kind, i % 7, 0) for i in range(8) for kind in "FB"]
    return [0, 1, 2, 3], [order] * 4
