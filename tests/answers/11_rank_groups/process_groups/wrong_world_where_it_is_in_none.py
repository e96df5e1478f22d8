"""A rank that is in no group of a name gets the whole world."""


def groups_of_this_rank(groups):
    mine = dict.fromkeys(groups, dist.group.WORLD)
    for name, lists in groups.items():
        for ranks in lists:
            group = dist.new_group(ranks)
            if dist.get_rank() in ranks:
                mine[name] = group
    return mine
