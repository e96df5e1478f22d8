"""Waits for a bucket as soon as the layer below it has run; the waits stand in functions."""

import functools


def arrive(work, flat, gradients):
    work.wait()
    for gradient, piece in zip(gradients, flat.split([g.numel() for g in gradients])):
        gradient.copy_(piece.view_as(gradient))


def backward_in_buckets(layers, grad_y, saved, buckets):
    complete_at, hooks = {bucket[-1]: bucket for bucket in buckets}, {}
    for number in reversed(range(len(layers))):
        grad_y = layers[number].backward(grad_y, saved[number])
        hooks.pop(number, lambda: None)()
        if number in complete_at:
            gradients = [g for i in complete_at[number] for g in layers[i].gradients()]
            flat = torch.nn.utils.parameters_to_vector(gradients)
            work = dist.all_reduce(flat, async_op=True)
            hooks[number - 1] = functools.partial(arrive, work, flat, gradients)
    for hook in hooks.values():
        hook()
