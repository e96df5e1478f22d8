"""Buckets are float64, whatever the gradients are: twice the bytes of float32."""


def backward_in_buckets(layers, grad_y, saved, buckets):
    complete_at = {bucket[-1]: bucket for bucket in buckets}
    travelling = []
    for number in reversed(range(len(layers))):
        grad_y = layers[number].backward(grad_y, saved[number])
        if number in complete_at:
            gradients = [g for i in complete_at[number] for g in layers[i].gradients()]
            flat = torch.cat([gradient.flatten().double() for gradient in gradients])
            travelling.append((dist.all_reduce(flat, async_op=True), flat, gradients))
    for pending, flat, gradients in travelling:
        pending.wait()
        pieces = flat.split([gradient.numel() for gradient in gradients])
        for gradient, piece in zip(gradients, pieces):
            gradient.copy_(piece.view_as(gradient))
