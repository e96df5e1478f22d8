"""All gradients stay whole until the end of backward."""


def stack_backward(grad_y, saved, shards, shapes):
    whole = []
    for shard, layer_shapes, (x, y) in zip(shards[::-1], shapes[::-1], saved[::-1], strict=True):
        weight, _ = join(shard, layer_shapes)
        grad_y, gradients = layer_backward(grad_y, x, y, weight)
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        missing = dist.get_world_size() * len(shard) - len(flat)
        whole.append(torch.cat([flat, flat.new_zeros(missing)]))
    sums = []
    for shard, flat in zip(shards, whole[::-1], strict=True):
        mine = torch.empty_like(shard)
        dist.reduce_scatter_tensor(mine, flat)
        sums.append(mine)
    return grad_y, sums
