"""Gradients are not set to 0 between batches."""


def train(stage, batches, num_rows, width, lr):
    losses = []
    for x, labels in batches:
        micro_batches = list(zip(x.split(num_rows), labels.split(num_rows)))
        loss = one_forward_one_backward_step(stage, micro_batches, width)
        if loss is not None:
            losses.append(float(loss))
        for parameter, gradient in zip(stage.parameters(), stage.gradients()):
            parameter -= lr * gradient
    return losses
