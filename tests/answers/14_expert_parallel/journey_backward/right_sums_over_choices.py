"""Tensors of [T, k, D] throughout: einsum in place of index_add."""


def journey_backward(grad_y, weights, returned, order, sends, receives, experts_backward):
    shape = *weights.shape, grad_y.shape[1]
    made = grad_y.new_zeros(shape).flatten(0, 1)
    made[order] = returned
    grad_weights = torch.einsum("td,tkd->tk", grad_y, made.view(shape))
    leaving = torch.einsum("tk,td->tkd", weights, grad_y).flatten(0, 1)[order]
    arrived = leaving.new_empty(sum(receives), shape[2])
    dist.all_to_all_single(arrived, leaving, receives, sends)
    grad_rows = experts_backward(arrived)
    dist.all_to_all_single(leaving, grad_rows, sends, receives)
    terms = grad_y.new_zeros(shape).flatten(0, 1)
    terms[order] = leaving
    return terms.view(shape).sum(dim=1), grad_weights
