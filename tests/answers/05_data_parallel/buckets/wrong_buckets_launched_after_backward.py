"""All layers run first, then all buckets are sent."""


def backward_in_buckets(layers, grad_y, saved, buckets):
    for number in reversed(range(len(layers))):
        grad_y = layers[number].backward(grad_y, saved[number])
    travelling = []
    for bucket in buckets:
        gradients = [g for i in bucket for g in layers[i].gradients()]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        travelling.append((dist.all_reduce(flat, async_op=True), flat, gradients))
    for pending, flat, gradients in travelling:
        pending.wait()
        for gradient, piece in zip(gradients, flat.split([g.numel() for g in gradients])):
            gradient.copy_(piece.view_as(gradient))
