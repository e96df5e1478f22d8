"""Dropped rows' weights get a gradient, as if they had travelled."""


def journey_backward(grad_y, weights, returned, order, sends, receives, experts_backward):
    tokens = order // weights.shape[1]
    grad_weights = grad_y.sum(dim=1).repeat_interleave(weights.shape[1])
    grad_weights[order] = (grad_y[tokens] * returned).sum(dim=1)
    leaving = weights.flatten()[order, None] * grad_y[tokens]
    grad_made = leaving.new_empty(sum(receives), leaving.shape[1])
    dist.all_to_all_single(grad_made, leaving, receives, sends)
    grad_rows = experts_backward(grad_made)
    back = torch.empty_like(leaving)
    dist.all_to_all_single(back, grad_rows, sends, receives)
    grad_x = torch.zeros_like(grad_y).index_add_(0, tokens, back)
    return grad_x, grad_weights.view(weights.shape)
