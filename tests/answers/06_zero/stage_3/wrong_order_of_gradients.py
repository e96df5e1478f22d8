"""The gradients come in the order in which backward makes them."""


def stack_backward(grad_y, saved, shards, shapes):
    gradients = []
    for shard, layer_shapes, (x, y) in zip(shards[::-1], shapes[::-1], saved[::-1], strict=True):
        weight, _ = join(shard, layer_shapes)
        grad_y, whole = layer_backward(grad_y, x, y, weight)
        flat = torch.cat([gradient.flatten() for gradient in whole])
        flat = torch.cat([flat, flat.new_zeros(dist.get_world_size() * len(shard) - len(flat))])
        mine = torch.empty_like(shard)
        dist.reduce_scatter_tensor(mine, flat)
        gradients.append(mine)
    return grad_y, gradients
