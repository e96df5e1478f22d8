"""A k × k Jacobian for each token."""


def sigmoid_gate_backward(grad_weights, saved):
    x, weight, scores, chosen, weights, total, scale = saved
    same = torch.eye(chosen.shape[1], dtype=x.dtype)
    jacobian = (scale * same - weights[:, :, None]) / total[:, :, None]  # of w_j by s_i
    grad_picked = torch.einsum("tj,tji->ti", grad_weights, jacobian)
    where = torch.nn.functional.one_hot(chosen, len(weight)).to(x.dtype)
    slope = scores * (1 - scores)
    grad_scores = slope * torch.einsum("ti,tie->te", grad_picked, where)
    grad_weight = torch.einsum("te,td->ed", grad_scores, x).contiguous()
    dist.all_reduce(grad_weight)
    return torch.einsum("te,ed->td", grad_scores, weight), grad_weight
