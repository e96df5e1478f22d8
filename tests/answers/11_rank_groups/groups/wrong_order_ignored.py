"""tp is always innermost and pp outermost, whatever the order says."""


def groups_over(axes, sizes, order):
    inside, groups = axes.split("-"), {}
    for rank in range(math.prod(sizes.values())):
        rest, others = rank, []
        for axis in ("tp", "cp", "ep", "dp", "pp"):
            rest, place = divmod(rest, sizes.get(axis, 1))
            if axis not in inside:
                others.append(place)
        groups.setdefault(tuple(others), []).append(rank)
    return list(groups.values())
