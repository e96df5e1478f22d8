"""Every group is a run of consecutive ranks."""


def groups_over(axes, sizes, order):
    size = math.prod(sizes[axis] for axis in axes.split("-"))
    return torch.arange(math.prod(sizes.values())).view(-1, size).tolist()
