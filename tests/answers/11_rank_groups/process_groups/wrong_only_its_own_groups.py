"""A rank creates the groups that it is in, and no others."""


def groups_of_this_rank(groups):
    mine = {}
    for name, lists in groups.items():
        for ranks in lists:
            if dist.get_rank() in ranks:
                mine[name] = dist.new_group(ranks)
    return mine
