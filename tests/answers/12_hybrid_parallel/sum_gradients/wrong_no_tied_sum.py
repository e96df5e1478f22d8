"""The two copies of the table keep the gradient of their own use."""


def sum_gradients(groups, gradients, placements):
    for gradient, placement in zip(gradients, placements, strict=True):
        if placement == "partial":
            dist.all_reduce(gradient, group=groups["tp"])
        dist.all_reduce(gradient, group=groups["dp"])
