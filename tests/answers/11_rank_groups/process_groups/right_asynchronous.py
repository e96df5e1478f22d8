"""torch is asked which groups this rank is in, and the all-reduce is waited for."""


def groups_of_this_rank(groups):
    mine = {}
    for name in sorted(groups):
        made = [dist.new_group(ranks, group_desc=name) for ranks in groups[name]]
        mine[name] = [group for group in made if dist.get_rank(group) >= 0]
    return {name: found[0] for name, found in mine.items() if found}


def sum_tied_gradient(gradient, mine):
    try:
        group = mine["embedding"]
    except KeyError:
        return gradient
    total = torch.empty_like(gradient).copy_(gradient)
    dist.all_reduce(total, group=group, async_op=True).wait()
    return total
