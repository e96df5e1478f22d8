"""One gradient tensor, contiguous and without padding, is reduced where it lies."""


def step(parameters, gradients, state):
    shard, optimizer = state
    for gradient in gradients:
        dist.all_reduce(gradient)
    optimizer.step([cut(gradients)])
    shapes = [parameter.shape for parameter in parameters]
    for parameter, new in zip(parameters, join(shard, shapes), strict=True):
        parameter.copy_(new)
