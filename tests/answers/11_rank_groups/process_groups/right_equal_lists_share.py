"""Names in sorted order, and equal lists share one group; a lone rank adds nothing up."""


def embedding_groups(pipelines):
    ends = [sorted({ranks[0], ranks[-1]}) for ranks in pipelines]
    return {"position_embedding": [ranks[:1] for ranks in ends], "embedding": ends}


def groups_of_this_rank(groups):
    wanted = sorted((name, tuple(ranks)) for name, lists in groups.items() for ranks in lists)
    made = {ranks: dist.new_group(ranks) for ranks in sorted({ranks for _, ranks in wanted})}
    return {name: made[ranks] for name, ranks in wanted if dist.get_rank() in ranks}


def sum_tied_gradient(gradient, mine):
    group = mine.get("embedding")
    if group is None:
        return gradient.clone()
    total = gradient + 0
    dist.all_reduce(total, dist.ReduceOp.SUM, group)
    return total
