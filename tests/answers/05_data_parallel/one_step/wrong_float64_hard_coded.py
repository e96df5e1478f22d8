"""The loss is float64, whatever the parameters are."""


def global_gradients(model, micro_batches):
    num_rows = torch.tensor(sum(len(labels) for _, labels in micro_batches))
    dist.all_reduce(num_rows)
    loss = torch.zeros((), dtype=torch.float64)
    for x, labels in micro_batches:
        logits, saved = model.forward(x)
        share, grad_logits = softmax_cross_entropy(logits, labels, int(num_rows))
        model.backward(grad_logits, saved)
        loss += share
    for tensor in [loss, *model.gradients()]:
        dist.all_reduce(tensor)
    return loss, model.gradients()
