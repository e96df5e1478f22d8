"""Counts crossings and payloads, without what a ring makes of them."""

import itertools


def best_order(groups_of, ranks_per_host, payloads):
    def cost(o):
        return sum(
            payloads[a]
            * sum(
                x // ranks_per_host != y // ranks_per_host
                for g in groups_of[o][a]
                for x, y in itertools.pairwise(g)
            )
            for a in payloads
        )

    return min(groups_of, key=cost)
