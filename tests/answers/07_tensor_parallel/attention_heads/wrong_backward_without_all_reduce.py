"""Every rank keeps what its own heads owe to x."""


def heads_backward(grad_y, saved, shard):
    qkv_weight, _, out, _ = shard
    x, saved_heads, mixed = saved
    own_heads = saved_heads[0].shape[1]
    grad_mixed = (grad_y @ out).unflatten(2, (own_heads, -1)).transpose(1, 2)
    grads = torch.stack(attention_backward(grad_mixed, saved_heads))
    grad_qkv = grads.permute(1, 3, 0, 2, 4).flatten(2)
    rows, grad_rows = grad_y.flatten(0, 1), grad_qkv.flatten(0, 1)
    gradients = [grad_rows.T @ x.flatten(0, 1), grad_rows.sum(dim=0)]
    return grad_qkv @ qkv_weight, [*gradients, rows.T @ mixed.flatten(0, 1), rows.sum(dim=0)]
