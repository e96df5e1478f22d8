"""Sums, not means, in one flat tensor with the loss and the number of rows; divides at the end."""


def start_equal(parameters):
    flat = torch.cat([parameter.flatten() for parameter in parameters])
    dist.broadcast(flat, src=0)
    for parameter, piece in zip(parameters, flat.split([p.numel() for p in parameters])):
        parameter.copy_(piece.view_as(parameter))


def global_gradients(model, micro_batches):
    loss, num_rows = model.parameters()[0].new_zeros(()), 0
    for x, labels in micro_batches:
        logits, saved = model.forward(x)
        mean, grad_logits = softmax_cross_entropy(logits, labels)
        model.backward(grad_logits * len(labels), saved)
        loss += mean * len(labels)
        num_rows += len(labels)
    tensors = [loss, loss.new_tensor(float(num_rows)), *model.gradients()]
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    dist.all_reduce(flat)
    loss, num_rows, *pieces = flat.split([tensor.numel() for tensor in tensors])
    gradients = [p.view_as(g) / num_rows for p, g in zip(pieces, model.gradients())]
    return (loss / num_rows).reshape(()), gradients
