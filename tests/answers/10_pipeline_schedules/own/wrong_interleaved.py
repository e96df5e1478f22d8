"""Interleaved 1F1B with two chunks: it holds more than four micro-batches."""


def own_schedule():
    pairs = [(first + i, c) for first in (0, 4) for c in (0, 1) for i in range(4)]
    orders = []
    for stage in range(4):
        ahead, order = 2 * (3 - stage) + 4, []
        for k, (i, c) in enumerate(pairs):
            order.append(("F", i, c))
            if k >= ahead:
                j, d = pairs[k - ahead]
                order.append(("B", j, 1 - d))
        orders.append(order + [("B", j, 1 - d) for j, d in pairs[16 - ahead :]])
    return [0, 1, 2, 3] * 2, orders
