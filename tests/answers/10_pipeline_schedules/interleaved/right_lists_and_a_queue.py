"""Actions are lists; backwards are taken from a queue, and what begins a group is computed."""


def interleaved_orders(num_stages, num_micro_batches, num_chunks, group_size):
    from collections import deque

    def by_group(i):
        return i // group_size

    pairs = sorted(
        ((i, c) for i in range(num_micro_batches) for c in range(num_chunks)),
        key=lambda pair: (by_group(pair[0]), pair[1], pair[0]),
    )
    orders = ()
    for stage in reversed(range(num_stages)):
        waiting, order = deque(), []
        for number, (i, c) in enumerate(pairs):
            order.append(["F", i, c])
            waiting.append(["B", i, num_chunks - 1 - c])
            if number >= 2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size:
                order.append(waiting.popleft())
        orders = ([*order, *waiting], *orders)
    return orders
