"""Waits for a bucket when the next one has been sent."""


def sent(layers):
    gradients = [gradient for layer in layers for gradient in layer.gradients()]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    work = dist.all_reduce(flat, async_op=True)

    def arrive():
        work.wait()
        for gradient, piece in zip(gradients, flat.split([g.numel() for g in gradients])):
            gradient.copy_(piece.view_as(gradient))

    return arrive


def backward_in_buckets(layers, grad_y, saved, buckets):
    complete_at = {bucket[-1]: bucket for bucket in buckets}
    arrive = None
    for number in reversed(range(len(layers))):
        grad_y = layers[number].backward(grad_y, saved[number])
        if number in complete_at:
            before, arrive = arrive, sent([layers[i] for i in complete_at[number]])
            if before:
                before()
    if arrive:
        arrive()
