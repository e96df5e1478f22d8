"""Every stage returns a loss: that of its own output."""


def gpipe_step(stage, micro_batches, width):
    last = dist.get_rank() == dist.get_world_size() - 1
    global_batch = sum(len(labels) for _, labels in micro_batches)
    kept, loss = [], torch.zeros((), dtype=torch.float64)
    for x, labels in micro_batches:
        y, saved = forward_stage(stage, x, width)
        share, grad_y = softmax_cross_entropy(y, labels, global_batch)
        loss += share
        kept.append((grad_y if last else None, saved))
    for (grad_y, saved), (x, _) in zip(kept, micro_batches):
        backward_stage(stage, grad_y, saved, len(x), width)
    return loss
