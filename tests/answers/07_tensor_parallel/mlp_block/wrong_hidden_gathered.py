"""Each layer's output is made whole by an all-gather: the values are right, the bytes are not."""


def mlp_forward(x, shard):
    first, first_bias, second, second_bias = shard
    part = (x @ first.T + first_bias).relu()
    slices = [torch.empty_like(part) for _ in range(dist.get_world_size())]
    dist.all_gather(slices, part)
    hidden = slices[dist.get_rank()]
    y = hidden @ second.T
    dist.all_reduce(y)
    return y + second_bias, (x, hidden)
