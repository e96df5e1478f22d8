"""Asks which layers are Linear, and hands each its sums as new tensors; layer 0 only adds."""

from byhand.model.mlp import Linear


def backward_in_buckets(layers, grad_y, saved, buckets):
    travelling = []
    for number in reversed(range(len(layers))):
        layer = layers[number]
        if number == 0:
            layer.backward_weight((grad_y, saved[0]))
        else:
            grad_y = layer.backward(grad_y, saved[number])
        if isinstance(layer, Linear):
            for bucket in buckets:
                if number == min(bucket):
                    gradients = [g for i in bucket for g in layers[i].gradients()]
                    flat = torch.cat([gradient.flatten() for gradient in gradients])
                    travelling.append((dist.all_reduce(flat, async_op=True), flat, bucket))
    for pending, flat, bucket in travelling:
        pending.wait()
        for layer in (layers[i] for i in bucket):
            size = layer.weight.numel()
            weight, bias, flat = flat.tensor_split([size, size + len(layer.bias)])
            layer.grad_weight, layer.grad_bias = weight.view_as(layer.weight), bias
