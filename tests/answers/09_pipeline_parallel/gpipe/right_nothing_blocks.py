"""All receives are posted first, sends are waited for at the end."""


def gpipe_step(stage, micro_batches, width):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    rows = [len(labels) for _, labels in micro_batches]
    down = [torch.empty(n, width, dtype=torch.float64) for n in rows]
    up = [torch.empty(n, width, dtype=torch.float64) for n in rows]
    inputs = [dist.irecv(t, rank - 1) for t in down] if rank > 0 else []
    outputs = [dist.irecv(t, rank + 1) for t in up] if rank < last else []
    kept, sent, loss = [], [], torch.zeros((), dtype=torch.float64)
    for i, (x, labels) in enumerate(micro_batches):
        if rank > 0:
            inputs[i].wait()
            x = down[i]
        y, saved = stage.forward(x)
        if rank == last:
            share, up[i] = softmax_cross_entropy(y, labels, sum(rows))
            loss += share
        else:
            sent.append((dist.isend(y, rank + 1), y))
        kept.append(saved)
    for i, saved in enumerate(kept):
        if rank < last:
            outputs[i].wait()
        grad_x = stage.backward(up[i], saved)
        if rank > 0:
            sent.append((dist.isend(grad_x, rank - 1), grad_x))
    for pending, _ in sent:
        pending.wait()
    return loss if rank == last else None
