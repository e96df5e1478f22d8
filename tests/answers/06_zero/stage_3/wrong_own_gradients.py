"""A rank keeps its slice of its own gradient: nothing is summed."""


def stack_backward(grad_y, saved, shards, shapes):
    gradients = []
    for shard, layer_shapes, (x, y) in zip(shards[::-1], shapes[::-1], saved[::-1], strict=True):
        weight, _ = join(shard, layer_shapes)
        grad_y, whole = layer_backward(grad_y, x, y, weight)
        gradients.append(cut(whole))
    return grad_y, gradients[::-1]
