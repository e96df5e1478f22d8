"""Overlaps, but sends every gradient by itself."""


def backward_in_buckets(layers, grad_y, saved, buckets):
    complete_at = {bucket[-1]: bucket for bucket in buckets}
    travelling = []
    for number in reversed(range(len(layers))):
        grad_y = layers[number].backward(grad_y, saved[number])
        for layer in complete_at.get(number, []):
            travelling += [dist.all_reduce(g, async_op=True) for g in layers[layer].gradients()]
    for pending in travelling:
        pending.wait()
