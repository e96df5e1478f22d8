"""Nothing is subtracted: large logits overflow."""


def split_loss(logits, targets, first):
    here = (targets >= first) & (targets < first + logits.shape[1])
    rows, column = torch.arange(len(targets)), (targets - first) * here
    exponentials = logits.exp()
    sums = torch.stack([exponentials.sum(dim=1), logits[rows, column] * here])
    dist.all_reduce(sums)
    counts = targets >= 0
    number = counts.sum().clamp(min=1)
    grad = exponentials / sums[0][:, None]
    grad[rows, column] -= here.to(grad.dtype)
    return ((sums[0].log() - sums[1]) * counts).sum() / number, grad * counts[:, None] / number
