"""All ranks sum; those without the weight add zeros."""


def sum_tied_gradient(gradient, mine):
    total = gradient.clone() if "embedding" in mine else torch.zeros_like(gradient)
    dist.all_reduce(total)
    return total if "embedding" in mine else gradient
