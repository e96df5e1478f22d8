"""The world is a tensor whose dimensions are the axes; a permutation brings a group's together."""


def groups_over(axes, sizes, order):
    names = order.split("-")[::-1]
    ranks = torch.arange(math.prod(sizes.values())).view([sizes[axis] for axis in names])
    inside = [d for d, axis in enumerate(names) if axis in axes.split("-")]
    outside = [d for d in range(len(names)) if d not in inside]
    size = math.prod(ranks.shape[d] for d in inside)
    return ranks.permute(outside + inside).reshape(-1, size).tolist()
