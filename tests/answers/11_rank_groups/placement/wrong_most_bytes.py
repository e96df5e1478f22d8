"""The order with the most bytes between hosts."""


def best_order(groups_of, ranks_per_host, payloads):
    def cost(order):
        found = groups_of[order].items()
        return sum(bytes_between_hosts(g, ranks_per_host, payloads[axis]) for axis, g in found)

    return max(groups_of, key=cost)
