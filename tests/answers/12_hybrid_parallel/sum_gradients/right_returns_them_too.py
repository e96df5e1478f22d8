"""The list of gradients, changed in place, is returned as well."""


def sum_gradients(groups, gradients, placements):
    for gradient, placement in zip(gradients, placements, strict=True):
        if placement == "partial":
            dist.all_reduce(gradient, group=groups["tp"])
        dist.all_reduce(gradient, group=groups["dp"])
        if placement == "tied":
            dist.all_reduce(gradient, group=groups["embedding"])
    return gradients
