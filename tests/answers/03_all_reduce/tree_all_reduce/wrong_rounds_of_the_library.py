"""The library's engine below the function that is locked carries out its tree."""

from byhand.all_reduce import running, trees


def tree_all_reduce(tensor):
    total, n = tensor.flatten().clone(), dist.get_world_size()
    for _ in running._rounds_of(trees.tree(n), total, range(n), None):
        pass
    return total.view(tensor.shape)
