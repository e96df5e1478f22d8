"""Every rank creates all groups, its own first: not in one order."""


def groups_of_this_rank(groups):
    mine, rank = {}, dist.get_rank()
    for name, lists in groups.items():
        for ranks in sorted(lists, key=lambda ranks: rank not in ranks):
            group = dist.new_group(ranks)
            if rank in ranks:
                mine[name] = group
    return mine
