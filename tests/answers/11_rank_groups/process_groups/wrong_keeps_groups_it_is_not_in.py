"""The last group of each name is kept, whether this rank is in it or not."""


def groups_of_this_rank(groups):
    mine = {}
    for name, lists in groups.items():
        for ranks in lists:
            group = dist.new_group(ranks)
            if name not in mine or dist.get_rank() in ranks:
                mine[name] = group
    return mine
