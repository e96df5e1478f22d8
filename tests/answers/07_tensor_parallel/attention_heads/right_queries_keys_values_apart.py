"""Keeps queries', keys' and values' weights as a list of three, and attends head by head."""


def own_slices(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    return [part.chunk(world_size)[rank].clone() for part in tensor.chunk(3)]


def heads_shard(qkv, qkv_bias, out, out_bias):
    columns = out.T.chunk(dist.get_world_size())[dist.get_rank()].clone()
    return own_slices(qkv), own_slices(qkv_bias), columns, out_bias.clone()


def heads_forward(x, shard, num_heads):
    weights, biases, columns, out_bias = shard
    parts = [x @ weight.T + bias for weight, bias in zip(weights, biases)]
    own_heads = num_heads // dist.get_world_size()
    each = zip(*(part.chunk(own_heads, dim=2) for part in parts))
    mixed, saved = zip(*(attention(*(p.unsqueeze(1) for p in head)) for head in each))
    mixed = torch.cat([head.squeeze(1) for head in mixed], dim=2)
    y = mixed @ columns
    if dist.get_rank() == 0:
        y += out_bias
    dist.all_reduce(y)
    return y, (x, mixed, saved)


def heads_backward(grad_y, saved, shard):
    weights, _, columns, _ = shard
    x, mixed, saved_heads = saved
    grad_heads = (grad_y @ columns.T).chunk(len(saved_heads), dim=2)
    pairs = zip(grad_heads, saved_heads)
    grads = zip(*(attention_backward(grad.unsqueeze(1), head) for grad, head in pairs))
    grads = [torch.cat(part, dim=3).squeeze(1) for part in grads]
    grad_x = sum(grad @ weight for grad, weight in zip(grads, weights))
    dist.all_reduce(grad_x)
    grad_weight = torch.cat([torch.einsum("bsd,bse->de", grad, x) for grad in grads])
    grad_bias = torch.cat([grad.sum(dim=(0, 1)) for grad in grads])
    grad_out = torch.einsum("bsd,bse->de", grad_y, mixed)
    return grad_x, [grad_weight, grad_bias, grad_out, grad_y.sum(dim=(0, 1))]
