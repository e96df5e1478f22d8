"""The way back takes the splits of the way there, not exchanged."""


def from_experts(made, weights, saved):
    order, sends, receives = saved
    returned = made.new_empty(len(order), made.shape[1])
    dist.all_to_all_single(returned, made.contiguous(), receives, sends)
    y = made.new_zeros(len(weights), made.shape[1])
    terms = weights.flatten()[order, None] * returned
    return y.index_add_(0, order // weights.shape[1], terms)
