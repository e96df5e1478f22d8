"""Of "tp-pp" only tp counts."""


def groups_over(axes, sizes, order):
    groups = {}
    for rank in range(math.prod(sizes.values())):
        rest, others = rank, []
        for axis in order.split("-"):
            rest, place = divmod(rest, sizes[axis])
            if axis != axes.split("-")[0]:
                others.append(place)
        groups.setdefault(tuple(others), []).append(rank)
    return list(groups.values())
