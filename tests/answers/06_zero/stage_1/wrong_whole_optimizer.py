"""A sharded face: the same calls and numbers, but every rank keeps the state of everything."""


def start(parameters, optimizer):
    for parameter in parameters:
        whole = parameter.contiguous()
        dist.broadcast(whole, src=0)
        parameter.copy_(whole)
    flat = torch.cat([parameter.flatten() for parameter in parameters])
    return flat, optimizer([flat])


def step(parameters, gradients, state):
    flat, optimizer = state
    world_size = dist.get_world_size()
    k = math.ceil(len(flat) / world_size)
    gradient = torch.cat([gradient.flatten() for gradient in gradients])
    gradient = torch.cat([gradient, gradient.new_zeros(world_size * k - len(flat))])
    mine = gradient.new_empty(k)
    dist.reduce_scatter_tensor(mine, gradient)
    dist.all_gather_into_tensor(gradient, mine)
    optimizer.step([gradient[: len(flat)]])
    begin = 0
    for parameter in parameters:
        parameter.copy_(flat[begin : begin + parameter.numel()].view(parameter.shape))
        begin += parameter.numel()
