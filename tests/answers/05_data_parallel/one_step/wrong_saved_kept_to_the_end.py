"""What backward needed is kept in a list, although nobody needs it again."""


def global_gradients(model, micro_batches):
    num_rows = torch.tensor(sum(len(labels) for _, labels in micro_batches))
    dist.all_reduce(num_rows)
    loss, history = model.parameters()[0].new_zeros(()), []
    for x, labels in micro_batches:
        logits, saved = model.forward(x)
        history.append((logits, saved))
        share, grad_logits = softmax_cross_entropy(logits, labels, int(num_rows))
        model.backward(grad_logits, saved)
        loss += share
    for tensor in [loss, *model.gradients()]:
        dist.all_reduce(tensor)
    return loss, model.gradients()
