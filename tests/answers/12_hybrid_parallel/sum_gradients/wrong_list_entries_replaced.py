"""New tensors in the list; the rank's own gradients stay as they were."""


def sum_gradients(groups, gradients, placements):
    for i, placement in enumerate(placements):
        total = gradients[i].clone()
        if placement == "partial":
            dist.all_reduce(total, group=groups["tp"])
        dist.all_reduce(total, group=groups["dp"])
        if placement == "tied":
            dist.all_reduce(total, group=groups["embedding"])
        gradients[i] = total
