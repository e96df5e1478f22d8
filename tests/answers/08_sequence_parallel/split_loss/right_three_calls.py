"""Each number by a call of its own, and a scatter for the one."""


def split_loss(logits, targets, first):
    largest = logits.max(dim=1).values
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    shifted = logits - largest.unsqueeze(1)
    answer = torch.zeros_like(largest)
    for row, target in enumerate(targets.tolist()):
        if first <= target < first + logits.shape[1]:
            answer[row] = shifted[row, target - first]
    dist.all_reduce(answer)
    probabilities = shifted.exp_()
    total = probabilities.sum(dim=1)
    dist.all_reduce(total)
    probabilities /= total.unsqueeze(1)
    counting = [row for row, target in enumerate(targets.tolist()) if target >= 0]
    for row, target in enumerate(targets.tolist()):
        if target < 0:
            probabilities[row] = 0
        elif first <= target < first + logits.shape[1]:
            probabilities[row, target - first] -= 1
    if not counting:
        return logits.new_zeros(()), probabilities
    losses = total.log() - answer
    return losses[counting].mean(), probabilities / len(counting)
