"""Every shard is a view, so all heads' weights stay in memory."""


def heads_shard(qkv, qkv_bias, out, out_bias):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    thirds = [part.chunk(world_size)[rank] for part in qkv.chunk(3)]
    bias = torch.cat([part.chunk(world_size)[rank] for part in qkv_bias.chunk(3)])
    return thirds, bias, out.chunk(world_size, dim=1)[rank], out_bias


def heads_forward(x, shard, num_heads):
    thirds, qkv_bias, out, out_bias = shard
    own_heads = num_heads // dist.get_world_size()
    qkv = (x @ torch.cat(thirds).T + qkv_bias).unflatten(2, (3, own_heads, -1))
    mixed, saved = attention(*qkv.permute(2, 0, 3, 1, 4))
    mixed = mixed.transpose(1, 2).flatten(2)
    y = mixed @ out.T
    dist.all_reduce(y)
    return y + out_bias, (x, saved, mixed)


def heads_backward(grad_y, saved, shard):
    thirds, _, out, _ = shard
    x, saved_heads, mixed = saved
    own_heads = saved_heads[0].shape[1]
    grad_mixed = (grad_y @ out).unflatten(2, (own_heads, -1)).transpose(1, 2)
    grads = torch.stack(attention_backward(grad_mixed, saved_heads))
    grad_qkv = grads.permute(1, 3, 0, 2, 4).flatten(2)
    grad_x = grad_qkv @ torch.cat(thirds)
    dist.all_reduce(grad_x)
    rows, grad_rows = grad_y.flatten(0, 1), grad_qkv.flatten(0, 1)
    gradients = [grad_rows.T @ x.flatten(0, 1), grad_rows.sum(dim=0)]
    return grad_x, [*gradients, rows.T @ mixed.flatten(0, 1), rows.sum(dim=0)]
