"""Looks for the partial gradient, and finds the first one only."""


def sum_gradients(groups, gradients, placements):
    for gradient in gradients:
        dist.all_reduce(gradient, group=groups["dp"])
    for placement, name in (("partial", "tp"), ("tied", "embedding")):
        if placement in placements:
            dist.all_reduce(gradients[placements.index(placement)], group=groups[name])
