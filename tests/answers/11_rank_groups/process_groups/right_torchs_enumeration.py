"""torch creates all groups of a name in one call, the names in reverse."""


def groups_of_this_rank(groups):
    mine = {}
    for name in reversed(groups):
        group, _ = dist.new_subgroups_by_enumeration(groups[name])
        if group is not None:
            mine[name] = group
    return mine
