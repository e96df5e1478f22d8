"""Runs its micro-batches one after the other: slow, but task 4 asks for nothing else."""


def step(stage, micro_batches, width):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    global_batch = sum(len(labels) for _, labels in micro_batches)
    losses = []
    for x, labels in micro_batches:
        arrived = torch.empty(len(x), width, dtype=torch.float64)
        if rank > 0:
            dist.recv(arrived, rank - 1)
        y, saved = stage.forward(x if rank == 0 else arrived)
        if rank < last:
            dist.send(y, rank + 1)
            grad_y = torch.empty_like(y)
            dist.recv(grad_y, rank + 1)
        else:
            share, grad_y = softmax_cross_entropy(y, labels, global_batch)
            losses.append(share)
        grad_x = stage.backward(grad_y, saved)
        if rank > 0:
            dist.send(grad_x, rank - 1)
    return losses


def train(stage, batches, num_rows, width, lr):
    history = []
    for x, labels in batches:
        cuts = range(0, len(x), num_rows)
        losses = step(stage, [(x[i : i + num_rows], labels[i : i + num_rows]) for i in cuts], width)
        history += [float(sum(losses))] if losses else []
        torch._foreach_sub_(stage.parameters(), stage.gradients(), alpha=lr)
        stage.zero_gradients()
    return history
