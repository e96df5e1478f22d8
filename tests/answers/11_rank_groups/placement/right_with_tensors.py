"""Whole tensors of ranks, and bytes by multiplication."""


def stays_inside(group, ranks_per_node):
    nodes = torch.tensor(group) // ranks_per_node
    return bool((nodes == nodes[0]).all())


def bytes_between_nodes(groups, ranks_per_node, payload):
    nodes = torch.tensor(groups) // ranks_per_node
    size = nodes.shape[1]
    crossings = (nodes != nodes.roll(-1, dims=1)).sum().item()
    return crossings * (2 * (size - 1) * payload) // size


def best_order(groups_of, ranks_per_node, payloads):
    best = None
    for order, groups in groups_of.items():
        cost = sum(bytes_between_nodes(groups[a], ranks_per_node, payloads[a]) for a in payloads)
        best = min(best or (cost, order), (cost, order))
    return best[1]
