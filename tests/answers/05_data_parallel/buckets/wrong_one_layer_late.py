"""Sends a bucket only after the layer below it has run."""


def backward_in_buckets(layers, grad_y, saved, buckets):
    complete_at = {max(bucket[-1] - 1, 0): bucket for bucket in buckets}
    travelling = []
    for number in reversed(range(len(layers))):
        grad_y = layers[number].backward(grad_y, saved[number])
        if number in complete_at:
            gradients = [g for i in complete_at[number] for g in layers[i].gradients()]
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            travelling.append((dist.all_reduce(flat, async_op=True), flat, gradients))
    for pending, flat, gradients in travelling:
        pending.wait()
        for gradient, piece in zip(gradients, flat.split([g.numel() for g in gradients])):
            gradient.copy_(piece.view_as(gradient))
