"""The backwards run in reverse order, as in the paper's figure, and the loss is computed there."""


def gpipe_step(stage, micro_batches, width):
    last = dist.get_rank() == dist.get_world_size() - 1
    global_batch = sum(len(labels) for _, labels in micro_batches)
    stack = [(forward_stage(stage, x, width), len(x), labels) for x, labels in micro_batches]
    shares = []
    while stack:
        (y, saved), num_rows, labels = stack.pop()
        grad_y = None
        if last:
            share, grad_y = softmax_cross_entropy(y, labels, global_batch)
            shares.append(share)
        backward_stage(stage, grad_y, saved, num_rows, width)
    return torch.stack(shares).sum() if last else None
