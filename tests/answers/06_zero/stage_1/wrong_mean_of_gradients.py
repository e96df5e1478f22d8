"""Divided by the ranks, though the loss is a mean over the global batch already."""


def step(parameters, gradients, state):
    shard, optimizer = state
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    missing = dist.get_world_size() * len(shard) - len(flat)
    flat = torch.cat([flat, flat.new_zeros(missing)])
    mine = torch.empty_like(shard)
    dist.reduce_scatter_tensor(mine, flat)
    optimizer.step([mine / dist.get_world_size()])
    shapes = [parameter.shape for parameter in parameters]
    for parameter, new in zip(parameters, join(shard, shapes), strict=True):
        parameter.copy_(new)
