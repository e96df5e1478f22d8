"""Rows that do not fill a micro-batch are left out."""


def train(stage, batches, num_rows, width, lr):
    losses = []
    for x, labels in batches:
        stage.zero_gradients()
        micro_batches = list(
            zip(
                x[: len(x) // num_rows * num_rows].split(num_rows),
                labels[: len(x) // num_rows * num_rows].split(num_rows),
            )
        )
        loss = one_forward_one_backward_step(stage, micro_batches, width)
        if loss is not None:
            losses.append(float(loss))
        for parameter, gradient in zip(stage.parameters(), stage.gradients()):
            parameter -= lr * gradient
    return losses
