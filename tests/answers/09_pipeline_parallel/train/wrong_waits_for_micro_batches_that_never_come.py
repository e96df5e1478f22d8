"""In the warm-up a stage waits for as many micro-batches as usual; the last batch has fewer."""


def my_step(stage, micro_batches, width):
    rank, count = dist.get_rank(), len(micro_batches)
    last = dist.get_world_size() - 1
    global_batch = sum(len(labels) for _, labels in micro_batches)
    kept, sends, losses = {}, [], []

    def receive(i, peer):
        tensor = torch.empty(len(micro_batches[min(i, count - 1)][0]), width, dtype=torch.float64)
        dist.recv(tensor, peer)
        return tensor

    def forward(i):
        x, labels = micro_batches[min(i, count - 1)]
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

    warm_up = last - rank
    for i in range(warm_up):
        forward(i)
    for i in range(warm_up, count):
        forward(i)
        backward(i - warm_up)
    for i in range(max(0, count - warm_up), count):
        backward(i)
    for pending, _ in sends:
        pending.wait()
    return sum(losses) if rank == last else None


def train(stage, batches, num_rows, width, lr):
    losses = []
    for x, labels in batches:
        stage.zero_gradients()
        micro_batches = list(zip(x.split(num_rows), labels.split(num_rows)))
        loss = my_step(stage, micro_batches, width)
        if loss is not None:
            losses.append(float(loss))
        for parameter, gradient in zip(stage.parameters(), stage.gradients()):
            parameter -= lr * gradient
    return losses
