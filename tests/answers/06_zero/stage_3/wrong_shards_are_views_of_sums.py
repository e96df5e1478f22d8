"""An all-reduce of the gradient, and a view of the sum as its shard."""


def stack_backward(grad_y, saved, shards, shapes):
    rank, gradients = dist.get_rank(), []
    for shard, layer_shapes, (x, y) in zip(shards[::-1], shapes[::-1], saved[::-1], strict=True):
        weight, _ = join(shard, layer_shapes)
        grad_y, whole = layer_backward(grad_y, x, y, weight)
        flat = torch.cat([gradient.flatten() for gradient in whole])
        flat = torch.cat([flat, flat.new_zeros(dist.get_world_size() * len(shard) - len(flat))])
        dist.all_reduce(flat)
        gradients.append(flat[rank * len(shard) : (rank + 1) * len(shard)])
    return grad_y, gradients[::-1]
