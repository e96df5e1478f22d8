"""Sends each bucket in time, and waits for it at once."""


def backward_in_buckets(
    layers: list, grad_y: torch.Tensor, saved: list, buckets: list[list[int]]
) -> None:
    complete_at = {bucket[-1]: bucket for bucket in buckets}
    travelling = []
    for number in reversed(range(len(layers))):
        grad_y = layers[number].backward(grad_y, saved[number])
        if number in complete_at:
            gradients = [g for i in complete_at[number] for g in layers[i].gradients()]
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            dist.all_reduce(flat)
            travelling.append((flat, gradients))
    for flat, gradients in travelling:
        pieces = flat.split([gradient.numel() for gradient in gradients])
        for gradient, piece in zip(gradients, pieces, strict=True):
            gradient.copy_(piece.view_as(gradient))
