"""An all-reduce where a reduce-scatter is enough: half as many bytes again."""


def step(parameters, gradients, state):
    shard, optimizer = state
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    optimizer.step([cut([flat])])
    shapes = [parameter.shape for parameter in parameters]
    for parameter, new in zip(parameters, join(shard, shapes), strict=True):
        parameter.copy_(new)
