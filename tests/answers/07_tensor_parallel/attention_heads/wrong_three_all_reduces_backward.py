"""Queries, keys and values each send their own grad_x: three all-reduces instead of one."""


def heads_backward(grad_y, saved, shard):
    qkv_weight, _, out, _ = shard
    x, saved_heads, mixed = saved
    own_heads = saved_heads[0].shape[1]
    grad_mixed = (grad_y @ out).unflatten(2, (own_heads, -1)).transpose(1, 2)
    parts = [g.transpose(1, 2).flatten(2) for g in attention_backward(grad_mixed, saved_heads)]
    terms = [part @ weight for part, weight in zip(parts, qkv_weight.chunk(3))]
    for term in terms:
        dist.all_reduce(term)
    rows, grad_rows = grad_y.flatten(0, 1), torch.cat(parts, dim=2).flatten(0, 1)
    gradients = [grad_rows.T @ x.flatten(0, 1), grad_rows.sum(dim=0)]
    return sum(terms), [*gradients, rows.T @ mixed.flatten(0, 1), rows.sum(dim=0)]
