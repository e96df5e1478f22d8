"""The groups come sorted by the decimal digits of their first rank."""


def groups_over(axes, sizes, order):
    inside, groups = axes.split("-"), {}
    for rank in range(math.prod(sizes.values())):
        rest, others = rank, []
        for axis in order.split("-"):
            rest, place = divmod(rest, sizes[axis])
            if axis not in inside:
                others.append(place)
        groups.setdefault(tuple(others), []).append(rank)
    return sorted(groups.values(), key=str)
