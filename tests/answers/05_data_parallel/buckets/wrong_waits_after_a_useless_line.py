"""Computes something useless between the call and the wait; each bucket still travels alone."""


def backward_in_buckets(layers, grad_y, saved, buckets):
    complete_at = {bucket[-1]: bucket for bucket in buckets}
    for number in reversed(range(len(layers))):
        grad_y = layers[number].backward(grad_y, saved[number])
        if number in complete_at:
            gradients = [g for i in complete_at[number] for g in layers[i].gradients()]
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            pending = dist.all_reduce(flat, async_op=True)
            torch.zeros(1)
            pending.wait()
            for gradient, piece in zip(gradients, flat.split([g.numel() for g in gradients])):
                gradient.copy_(piece.view_as(gradient))
