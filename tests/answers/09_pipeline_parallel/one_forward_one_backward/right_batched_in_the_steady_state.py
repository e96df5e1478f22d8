"""Output and gradient go out in one batch, as in Megatron; only what arrives is waited for."""


def one_forward_one_backward_step(stage, micro_batches, width, depth=1):
    rank, count = dist.get_rank(), len(micro_batches)
    last = dist.get_world_size() - 1
    rows = [len(labels) for _, labels in micro_batches]
    queue, leaving, loss = [], [], torch.zeros((), dtype=torch.float64)

    def exchange(sends, receives):
        sends = [(t, peer) for t, peer in sends if 0 <= peer <= last]
        receives = [(i, peer) for i, peer in receives if 0 <= peer <= last and i < count]
        arrived = [(torch.empty(rows[i], width, dtype=torch.float64), peer) for i, peer in receives]
        ops = [dist.P2POp(dist.isend, t, peer) for t, peer in sends]
        ops += [dist.P2POp(dist.irecv, t, peer) for t, peer in arrived]
        works = dist.batch_isend_irecv(ops) if ops else []
        leaving.extend(zip(works, sends))
        for pending in works[len(sends) :]:
            pending.wait()
        return [t for t, _ in arrived] or [None]

    def forward(i, x):
        nonlocal loss
        y, saved = stage.forward(micro_batches[i][0] if rank == 0 else x)
        grad_y = None
        if rank == last:
            share, grad_y = softmax_cross_entropy(y, micro_batches[i][1], sum(rows))
            loss += share
        queue.append((saved, grad_y))
        return y

    def backward(grad_y):
        saved, own = queue.pop(0)
        return stage.backward(own if rank == last else grad_y, saved)

    warm_up = min(depth * (last - rank), count)
    for i in range(warm_up):
        (x,) = exchange([], [(i, rank - 1)])
        exchange([(forward(i, x), rank + 1)], [])
    if count > warm_up:
        (x,) = exchange([], [(warm_up, rank - 1)])
    for i in range(warm_up, count):
        y = forward(i, x)
        (grad_y,) = exchange([(y, rank + 1)], [(i - warm_up, rank + 1)])
        grad_x = backward(grad_y)
        after = [(i + 1, rank - 1)]
        (x,) = exchange([(grad_x, rank - 1)], after)
    for i in range(count - warm_up, count):
        (grad_y,) = exchange([], [(i, rank + 1)])
        exchange([(backward(grad_y), rank - 1)], [])
    for pending, _ in leaving:
        pending.wait()
    return loss if rank == last else None
