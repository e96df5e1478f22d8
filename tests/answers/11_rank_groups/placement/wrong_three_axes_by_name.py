"""Adds up tp, dp and pp, whatever axes there are."""


def best_order(groups_of, ranks_per_host, payloads):
    def cost(order):
        found = groups_of[order]
        return sum(
            bytes_between_hosts(found[axis], ranks_per_host, payloads[axis])
            for axis in ("tp", "dp", "pp")
        )

    return min(groups_of, key=cost)
