"""The order of work is written down first, then done; receives are posted before their turn."""


def one_forward_one_backward_step(stage, micro_batches, width, depth=1):
    rank, count = dist.get_rank(), len(micro_batches)
    last = dist.get_world_size() - 1
    ahead = min(depth * (last - rank), count)
    order = "F" * ahead + "FB" * (count - ahead) + "B" * ahead
    global_batch = sum(len(labels) for _, labels in micro_batches)
    loss, sent, kept, numbers = 0, [], [], {"F": 0, "B": 0}
    from_peer = {"F": rank - 1, "B": rank + 1}
    posted = {}

    def post(kind):
        i, peer = numbers[kind], from_peer[kind]
        if 0 <= peer <= last and i < count:
            tensor = torch.empty(len(micro_batches[i][1]), width, dtype=torch.float64)
            posted[kind] = dist.irecv(tensor, peer), tensor

    post("F"), post("B")
    for kind in order:
        i, arrived = numbers[kind], None
        numbers[kind] += 1
        if kind in posted:
            work, arrived = posted.pop(kind)
            work.wait()
            post(kind)
        if kind == "F":
            x, labels = micro_batches[i]
            made, saved = stage.forward(x if arrived is None else arrived)
            grad_y = None
            if rank == last:
                share, grad_y = softmax_cross_entropy(made, labels, global_batch)
                loss = loss + share
            kept.append((saved, grad_y))
        else:
            saved, grad_y = kept.pop(0)
            made = stage.backward(grad_y if arrived is None else arrived, saved)
        saved = grad_y = arrived = None
        to = rank + 1 if kind == "F" else rank - 1
        if 0 <= to <= last:
            sent.append((dist.isend(made, to), made))
    for work, _ in sent:
        work.wait()
    return loss if rank == last else None
