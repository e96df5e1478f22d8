"""Every rank subtracts its own largest logit: the sums have different scales."""


def split_loss(logits, targets, first):
    shifted = logits - logits.amax(dim=1, keepdim=True)
    here = (targets >= first) & (targets < first + logits.shape[1])
    rows, column = torch.arange(len(targets)), (targets - first) * here
    sums = torch.stack([shifted.exp().sum(dim=1), shifted[rows, column] * here])
    dist.all_reduce(sums)
    counts = targets >= 0
    number = counts.sum().clamp(min=1)
    grad = shifted.exp() / sums[0][:, None]
    grad[rows, column] -= here.to(grad.dtype)
    return ((sums[0].log() - sums[1]) * counts).sum() / number, grad * counts[:, None] / number
