"""Every stage takes forward and backward in turn from the start: one micro-batch at a time."""


def one_forward_one_backward_step(stage, micro_batches, width, depth=1):
    rank, count = dist.get_rank(), len(micro_batches)
    last = dist.get_world_size() - 1
    global_batch = sum(len(labels) for _, labels in micro_batches)
    kept, sends, losses = {}, [], []

    def receive(i, peer):
        tensor = torch.empty(len(micro_batches[i][0]), width, dtype=torch.float64)
        dist.recv(tensor, peer)
        return tensor

    def forward(i):
        x, labels = micro_batches[i]
        y, saved = stage.forward(receive(i, rank - 1) if rank > 0 else x)
        grad_y = None
        if rank == last:
            share, grad_y = softmax_cross_entropy(y, labels, global_batch)
            losses.append(share)
        else:
            sends.append((dist.isend(y, rank + 1), y))
        kept[i] = grad_y, saved

    def backward(i):
        grad_y, saved = kept.pop(i)
        grad_x = stage.backward(grad_y if rank == last else receive(i, rank + 1), saved)
        if rank > 0:
            sends.append((dist.isend(grad_x, rank - 1), grad_x))

    warm_up = 0
    for i in range(count):
        forward(i)
        if i >= warm_up:
            backward(i - warm_up)
    for i in range(count - warm_up, count):
        backward(i)
    for pending, _ in sends:
        pending.wait()
    return sum(losses) if rank == last else None
