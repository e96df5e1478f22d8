"""In the steady state the backward comes before the forward."""


def interleaved_orders(num_stages, num_micro_batches, num_chunks, group_size):
    pairs = []
    for first in range(0, num_micro_batches, group_size):
        group = range(first, min(first + group_size, num_micro_batches))
        pairs += [(i, chunk) for chunk in range(num_chunks) for i in group]
    forwards = [("F", i, chunk) for i, chunk in pairs]
    backwards = [("B", i, num_chunks - 1 - chunk) for i, chunk in pairs]
    orders = []
    for stage in range(num_stages):
        ahead = min(2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size, len(pairs))
        order = forwards[:ahead]
        for k in range(ahead, len(pairs)):
            order += [backwards[k - ahead], forwards[k]]
        orders.append(order + backwards[len(pairs) - ahead :])
    return orders
