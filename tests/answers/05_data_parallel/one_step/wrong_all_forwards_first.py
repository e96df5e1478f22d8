"""All micro-batches run forward before the first runs backward: all activations at once."""


def global_gradients(model, micro_batches):
    num_rows = torch.tensor(sum(len(labels) for _, labels in micro_batches))
    dist.all_reduce(num_rows)
    loss = model.parameters()[0].new_zeros(())
    flights = [(*model.forward(x), labels) for x, labels in micro_batches]
    for logits, saved, labels in flights:
        share, grad_logits = softmax_cross_entropy(logits, labels, int(num_rows))
        model.backward(grad_logits, saved)
        loss += share
    for tensor in [loss, *model.gradients()]:
        dist.all_reduce(tensor)
    return loss, model.gradients()
