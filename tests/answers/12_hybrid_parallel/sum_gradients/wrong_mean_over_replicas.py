"""The sum over replicas is divided by their number."""


def sum_gradients(groups, gradients, placements):
    for gradient, placement in zip(gradients, placements, strict=True):
        if placement == "partial":
            dist.all_reduce(gradient, group=groups["tp"])
        dist.all_reduce(gradient, group=groups["dp"])
        gradient /= dist.get_world_size(groups["dp"])
        if placement == "tied":
            dist.all_reduce(gradient, group=groups["embedding"])
