"""Right sums for every micro-batch, but sent each time."""


def global_gradients(model, micro_batches):
    facts = torch.tensor([sum(len(labels) for _, labels in micro_batches), len(micro_batches)])
    everybody = [torch.empty_like(facts) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, facts)
    num_rows, most = sum(int(f[0]) for f in everybody), max(int(f[1]) for f in everybody)
    loss = model.parameters()[0].new_zeros(())
    total = [torch.zeros_like(gradient) for gradient in model.gradients()]
    for number in range(most):
        model.zero_gradients()
        if number < len(micro_batches):
            x, labels = micro_batches[number]
            logits, saved = model.forward(x)
            share, grad_logits = softmax_cross_entropy(logits, labels, num_rows)
            model.backward(grad_logits, saved)
            loss += share
        for mine, gradient in zip(total, model.gradients()):
            dist.all_reduce(gradient)
            mine += gradient
    dist.all_reduce(loss)
    return loss, total
