"""A token's rows overwrite each other instead of adding up."""


def from_experts(made, weights, saved):
    order, sends, receives = saved
    returned = made.new_empty(len(order), made.shape[1])
    dist.all_to_all_single(returned, made.contiguous(), sends, receives)
    y = made.new_zeros(len(weights), made.shape[1])
    terms = weights.flatten()[order, None] * returned
    y[order // weights.shape[1]] = terms
    return y
