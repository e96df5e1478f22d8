"""The state is forgotten between steps: right for one step only."""


def start(parameters, optimizer):
    for parameter in parameters:
        whole = parameter.contiguous()
        dist.broadcast(whole, src=0)
        parameter.copy_(whole)
    return cut(parameters), optimizer


def step(parameters, gradients, state):
    shard, optimizer = state
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    missing = dist.get_world_size() * len(shard) - len(flat)
    flat = torch.cat([flat, flat.new_zeros(missing)])
    mine = torch.empty_like(shard)
    dist.reduce_scatter_tensor(mine, flat)
    optimizer([shard]).step([mine])
    shapes = [parameter.shape for parameter in parameters]
    for parameter, new in zip(parameters, join(shard, shapes), strict=True):
        parameter.copy_(new)
