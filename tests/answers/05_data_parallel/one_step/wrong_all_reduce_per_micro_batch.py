"""Sends the gradients after every micro-batch, sums of sums included."""


def global_gradients(model, micro_batches):
    num_rows = torch.tensor(sum(len(labels) for _, labels in micro_batches))
    dist.all_reduce(num_rows)
    loss = model.parameters()[0].new_zeros(())
    for x, labels in micro_batches:
        logits, saved = model.forward(x)
        share, grad_logits = softmax_cross_entropy(logits, labels, int(num_rows))
        model.backward(grad_logits, saved)
        loss += share
        for gradient in model.gradients():
            dist.all_reduce(gradient)
    dist.all_reduce(loss)
    return loss, model.gradients()
