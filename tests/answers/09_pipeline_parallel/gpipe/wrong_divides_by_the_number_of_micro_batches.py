"""Gradients are divided by the number of micro-batches, though the loss was a mean already."""


def gpipe_step(stage, micro_batches, width):
    last = dist.get_rank() == dist.get_world_size() - 1
    global_batch = sum(len(labels) for _, labels in micro_batches)
    kept, loss = [], 0
    for x, labels in micro_batches:
        y, saved = forward_stage(stage, x, width)
        grad_y = None
        if last:
            share, grad_y = softmax_cross_entropy(y, labels, global_batch)
            loss = loss + share
        kept.append((grad_y, saved))
    for (grad_y, saved), (x, _) in zip(kept, micro_batches):
        backward_stage(stage, grad_y, saved, len(x), width)
    for gradient in stage.gradients():
        gradient /= len(micro_batches)
    return loss if last else None
