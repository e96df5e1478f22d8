"""The heaviest axis alone decides, not the sum."""


def best_order(groups_of, ranks_per_host, payloads):
    return min(
        groups_of,
        key=lambda o: max(
            bytes_between_hosts(groups_of[o][a], ranks_per_host, payloads[a]) for a in payloads
        ),
    )
