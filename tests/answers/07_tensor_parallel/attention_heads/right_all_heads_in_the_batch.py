"""Own heads go through attention as if they were sequences of a batch."""


def heads_forward(x, shard, num_heads):
    qkv_weight, qkv_bias, out, out_bias = shard
    own = num_heads // dist.get_world_size()
    parts = torch.nn.functional.linear(x, qkv_weight, qkv_bias).chunk(3, dim=-1)
    q, k, v = (torch.cat(part.chunk(own, dim=-1)).unsqueeze(1) for part in parts)
    mixed, saved = attention(q, k, v)
    mixed = torch.cat(mixed.squeeze(1).chunk(own), dim=-1)
    y = torch.nn.functional.linear(mixed, out, out_bias / dist.get_world_size())
    dist.all_reduce(y)
    return y, (x, saved, mixed, own)


def heads_backward(grad_y, saved, shard):
    qkv_weight, _, out, _ = shard
    x, saved_heads, mixed, own = saved
    grad_mixed = torch.cat((grad_y @ out).chunk(own, dim=-1)).unsqueeze(1)
    grads = attention_backward(grad_mixed, saved_heads)
    grad_qkv = torch.cat([torch.cat(g.squeeze(1).chunk(own), dim=-1) for g in grads], dim=-1)
    grad_x = grad_qkv @ qkv_weight
    dist.all_reduce(grad_x)
    gradients = [torch.tensordot(grad_qkv, x, ([0, 1], [0, 1])), grad_qkv.sum((0, 1))]
    gradients += [torch.tensordot(grad_y, mixed, ([0, 1], [0, 1])), grad_y.sum((0, 1))]
    return grad_x, gradients
