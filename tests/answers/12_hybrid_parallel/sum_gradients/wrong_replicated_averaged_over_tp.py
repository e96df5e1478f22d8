"""Right values, but sent in vain: replicated gradients are averaged over tp."""


def sum_gradients(groups, gradients, placements):
    for gradient, placement in zip(gradients, placements, strict=True):
        if placement != "sharded":
            dist.all_reduce(gradient, group=groups["tp"])
        if placement in ("replicated", "tied"):
            gradient /= dist.get_world_size(groups["tp"])
        dist.all_reduce(gradient, group=groups["dp"])
        if placement == "tied":
            dist.all_reduce(gradient, group=groups["embedding"])
