"""The second bias is added before the sum, on every rank."""


def mlp_forward(x, shard):
    first, first_bias, second, second_bias = shard
    hidden = (x @ first.T + first_bias).relu()
    y = hidden @ second.T + second_bias
    dist.all_reduce(y)
    return y, (x, hidden)
