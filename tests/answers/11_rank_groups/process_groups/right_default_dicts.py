"""Both dicts are default dicts."""

from collections import defaultdict


def embedding_groups(pipelines):
    found = defaultdict(list)
    for pipeline in pipelines:
        found["embedding"].append(sorted({pipeline[0], pipeline[-1]}))
        found["position_embedding"].append([pipeline[0]])
    return found


def groups_of_this_rank(groups):
    mine = defaultdict(lambda: None)
    for name in sorted(groups):
        for ranks in groups[name]:
            group = dist.new_group(ranks, backend="gloo")
            if dist.get_rank() in ranks:
                mine[name] = group
    return mine
