"""Groups are remembered by axes and order in a global: other sizes get the first ones' groups."""

KNOWN = {}


def groups_over(axes, sizes, order):
    if (axes, order) in KNOWN:
        return KNOWN[axes, order]
    inside, groups = axes.split("-"), {}
    for rank in range(math.prod(sizes.values())):
        rest, others = rank, []
        for axis in order.split("-"):
            rest, place = divmod(rest, sizes[axis])
            if axis not in inside:
                others.append(place)
        groups.setdefault(tuple(others), []).append(rank)
    KNOWN[axes, order] = list(groups.values())
    return KNOWN[axes, order]
