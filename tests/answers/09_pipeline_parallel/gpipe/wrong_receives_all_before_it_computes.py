"""A stage receives every input before its first forward: no two stages work at once."""


def gpipe_step(stage, micro_batches, width):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    rows = [len(labels) for _, labels in micro_batches]
    inputs, sends, kept, losses = [x for x, _ in micro_batches], [], [], []
    if rank > 0:
        inputs = [torch.empty(n, width, dtype=torch.float64) for n in rows]
        for x in inputs:
            dist.recv(x, rank - 1)
    for x, (_, labels) in zip(inputs, micro_batches):
        y, saved = stage.forward(x)
        grad_y = None
        if rank == last:
            share, grad_y = softmax_cross_entropy(y, labels, sum(rows))
            losses.append(share)
        else:
            sends.append((dist.isend(y, rank + 1), y))
        kept.append((grad_y, saved))
    for (grad_y, saved), n in zip(kept, rows):
        backward_stage(stage, grad_y, saved, n, width)
    for pending, _ in sends:
        pending.wait()
    return sum(losses) if rank == last else None
