"""One rank alone makes no call, and weights what experts made in place."""


def from_experts(made, weights, saved):
    order, sends, receives = saved
    if dist.get_world_size() == 1:
        returned = made
    else:
        returned = made.new_empty(len(order), made.shape[1])
        dist.all_to_all_single(returned, made.contiguous(), sends, receives)
    returned *= weights.flatten()[order, None]
    y = made.new_zeros(len(weights), made.shape[1])
    return y.index_add_(0, order // weights.shape[1], returned)
