"""The table is summed over all stages; middle ones have none."""


def sum_gradients(groups, gradients, placements):
    for gradient, placement in zip(gradients, placements, strict=True):
        if placement == "partial":
            dist.all_reduce(gradient, group=groups["tp"])
        dist.all_reduce(gradient, group=groups["dp"])
        if placement == "tied":
            dist.all_reduce(gradient, group=groups["pp"])
