"""A stage goes on only when the next says that it is done: a full wait between micro-batches."""


def gpipe_step(stage, micro_batches, width):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    global_batch = sum(len(labels) for _, labels in micro_batches)
    done = torch.zeros(1)
    kept, loss = [], 0
    for x, labels in micro_batches:
        y, saved = forward_stage(stage, x, width)
        grad_y = None
        if rank == last:
            share, grad_y = softmax_cross_entropy(y, labels, global_batch)
            loss = loss + share
        kept.append((grad_y, saved))
        if rank < last:
            dist.recv(done, rank + 1)
        if rank > 0:
            dist.send(done, rank - 1)
    for (grad_y, saved), (x, _) in zip(kept, micro_batches):
        backward_stage(stage, grad_y, saved, len(x), width)
    return loss if rank == last else None
