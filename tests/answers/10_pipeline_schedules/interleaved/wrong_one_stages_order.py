"""The order of stage 0 for every stage."""


def interleaved_orders(num_stages, num_micro_batches, num_chunks, group_size):
    pairs = []
    for first in range(0, num_micro_batches, group_size):
        for chunk in range(num_chunks):
            last = min(first + group_size, num_micro_batches)
            pairs += [(i, chunk) for i in range(first, last)]
    warm_up = min(2 * (num_stages - 1) + (num_chunks - 1) * group_size, len(pairs))
    order = [("F", *pair) for pair in pairs[:warm_up]]
    for k in range(warm_up, len(pairs)):
        i, chunk = pairs[k - warm_up]
        order += [("F", *pairs[k]), ("B", i, num_chunks - 1 - chunk)]
    order += [("B", i, num_chunks - 1 - c) for i, c in pairs[len(pairs) - warm_up :]]
    return [order] * num_stages
