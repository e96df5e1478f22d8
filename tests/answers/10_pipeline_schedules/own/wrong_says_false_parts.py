"""Parts that are on one stage in the route, and actions that use only one of them."""


def own_schedule():
    order = [(kind, i, 0) for i in range(8) for kind in "FIW"]
    return [0, 1, 2, 3] * 2, [order] * 4
