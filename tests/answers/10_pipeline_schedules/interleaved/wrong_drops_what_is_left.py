"""Only whole groups: the micro-batches that are left over are forgotten."""


def interleaved_orders(num_stages, num_micro_batches, num_chunks, group_size):
    pairs = []
    for number in range(num_micro_batches // group_size):
        for chunk in range(num_chunks):
            pairs += [(number * group_size + i, chunk) for i in range(group_size)]
    orders = []
    for stage in range(num_stages):
        warm_up = 2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size
        warm_up = min(warm_up, len(pairs))
        order = [("F", i, c) for i, c in pairs[:warm_up]]
        for (i, c), (j, d) in zip(pairs[warm_up:], pairs):
            order += [("F", i, c), ("B", j, num_chunks - 1 - d)]
        order += [("B", i, num_chunks - 1 - c) for i, c in pairs[len(pairs) - warm_up :]]
        orders.append(order)
    return orders
