"""A group holds the ranks that agree along its own axes, and not along the others."""


def groups_over(axes, sizes, order):
    inside, groups = axes.split("-"), {}
    for rank in range(math.prod(sizes.values())):
        rest, same = rank, []
        for axis in order.split("-"):
            rest, place = divmod(rest, sizes[axis])
            if axis in inside:
                same.append(place)
        groups.setdefault(tuple(same), []).append(rank)
    return list(groups.values())
