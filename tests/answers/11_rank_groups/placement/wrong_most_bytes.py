"""The order with the most bytes between nodes."""


def best_order(groups_of, ranks_per_node, payloads):
    def cost(order):
        found = groups_of[order].items()
        return sum(bytes_between_nodes(g, ranks_per_node, payloads[axis]) for axis, g in found)

    return max(groups_of, key=cost)
