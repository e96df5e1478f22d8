"""The first order that begins with tp is taken for the best."""


def best_order(groups_of, ranks_per_host, payloads):
    return next(order for order in groups_of if order.startswith("tp"))
