"""What all tensor-parallel ranks have alike is summed over them, too."""


def sum_gradients(groups, gradients, placements):
    for gradient, placement in zip(gradients, placements, strict=True):
        if placement != "sharded":
            dist.all_reduce(gradient, group=groups["tp"])
        dist.all_reduce(gradient, group=groups["dp"])
        if placement == "tied":
            dist.all_reduce(gradient, group=groups["embedding"])
