"""The parameters are not changed in place: the stage keeps its old weights."""


def train(stage, batches, num_rows, width, lr):
    losses = []
    for x, labels in batches:
        stage.zero_gradients()
        micro_batches = list(zip(x.split(num_rows), labels.split(num_rows)))
        loss = one_forward_one_backward_step(stage, micro_batches, width)
        if loss is not None:
            losses.append(float(loss))
        for parameter, gradient in zip(stage.parameters(), stage.gradients()):
            parameter = parameter - lr * gradient
    return losses
