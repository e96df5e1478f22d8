"""The best order is the one with the fewest groups on several hosts, whatever they send."""


def best_order(groups_of, ranks_per_host, payloads):
    def crossing(order):
        groups = [group for found in groups_of[order].values() for group in found]
        return sum(not stays_inside(group, ranks_per_host) for group in groups)

    return min(groups_of, key=crossing)
