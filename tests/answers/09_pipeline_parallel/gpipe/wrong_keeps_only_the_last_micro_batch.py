"""Every backward uses what the last forward saved."""


def gpipe_step(stage, micro_batches, width):
    last = dist.get_rank() == dist.get_world_size() - 1
    global_batch = sum(len(labels) for _, labels in micro_batches)
    grads, loss = [], 0
    for x, labels in micro_batches:
        y, saved = forward_stage(stage, x, width)
        grad_y = None
        if last:
            share, grad_y = softmax_cross_entropy(y, labels, global_batch)
            loss = loss + share
        grads.append(grad_y)
    for grad_y, (x, _) in zip(grads, micro_batches):
        backward_stage(stage, grad_y, saved, len(x), width)
    return loss if last else None
