"""What experts made is added up without the weights."""


def from_experts(made, weights, saved):
    order, sends, receives = saved
    returned = made.new_empty(len(order), made.shape[1])
    dist.all_to_all_single(returned, made.contiguous(), sends, receives)
    y = made.new_zeros(len(weights), made.shape[1])
    return y.index_add_(0, order // weights.shape[1], returned)
