"""Waits for the send before as soon as there is another: a deeper warm-up then hangs."""

from collections import deque


def one_forward_one_backward_step(stage, micro_batches, width, depth=1):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    todo, doing, sends, losses = deque(micro_batches), deque(), [], []
    global_batch = sum(len(labels) for _, labels in micro_batches)
    warm_up = depth * (last - rank)

    def send(tensor, peer):
        for _, pending in sends:
            pending.wait()
        sends[:] = [(tensor, dist.isend(tensor, peer))]

    def receive(num_rows, peer):
        tensor = torch.empty(num_rows, width, dtype=torch.float64)
        return tensor, dist.irecv(tensor, peer)

    ahead = receive(len(todo[0][0]), rank - 1) if rank > 0 else None
    while todo or doing:
        if todo:
            x, labels = todo.popleft()
            if rank > 0:
                x, pending = ahead
                pending.wait()
                ahead = receive(len(todo[0][0]), rank - 1) if todo else None
            y, saved = stage.forward(x)
            grad_y = None
            if rank == last:
                share, grad_y = softmax_cross_entropy(y, labels, global_batch)
                losses.append(share)
            else:
                send(y, rank + 1)
            doing.append((len(labels), saved, grad_y))
            del saved
            if len(doing) <= warm_up:
                continue
        num_rows, saved, grad_y = doing.popleft()
        if rank < last:
            grad_y, pending = receive(num_rows, rank + 1)
            pending.wait()
        grad_x = stage.backward(grad_y, saved)
        del saved
        if rank > 0:
            send(grad_x, rank - 1)
    for _, pending in sends:
        pending.wait()
    return sum(losses) if rank == last else None
