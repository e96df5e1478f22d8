"""Batches are filled up with micro-batches without rows: more messages than asked for."""


def train(stage, batches, num_rows, width, lr):
    losses = []
    for x, labels in batches:
        stage.zero_gradients()
        micro_batches = list(zip(x.split(num_rows), labels.split(num_rows)))
        missing = dist.get_world_size() - len(micro_batches)
        micro_batches += [(x[:0], labels[:0])] * missing
        loss = one_forward_one_backward_step(stage, micro_batches, width)
        if loss is not None:
            losses.append(float(loss))
        for parameter, gradient in zip(stage.parameters(), stage.gradients()):
            parameter -= lr * gradient
    return losses
