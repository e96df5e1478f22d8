"""The mean of the two gradients: half of the tied weight's."""


def sum_tied_gradient(gradient, mine):
    if "embedding" not in mine:
        return gradient
    total = gradient.clone()
    dist.all_reduce(total, group=mine["embedding"])
    return total / dist.get_world_size(mine["embedding"])
