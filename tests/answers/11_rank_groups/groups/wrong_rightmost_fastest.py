"""The rightmost axis of the order varies fastest, as in numpy."""


def groups_over(axes, sizes, order):
    inside, groups = axes.split("-"), {}
    for rank in range(math.prod(sizes.values())):
        rest, others = rank, []
        for axis in reversed(order.split("-")):
            rest, place = divmod(rest, sizes[axis])
            if axis not in inside:
                others.append(place)
        groups.setdefault(tuple(others), []).append(rank)
    return list(groups.values())
