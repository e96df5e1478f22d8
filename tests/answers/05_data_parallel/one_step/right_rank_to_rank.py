"""The parameters go from rank to rank in one flat tensor: a receive and a send."""


def start_equal(parameters):
    rank = dist.get_rank()
    flat = torch.cat([parameter.flatten() for parameter in parameters])
    if rank > 0:
        dist.recv(flat, src=rank - 1)
    if rank + 1 < dist.get_world_size():
        dist.send(flat, dst=rank + 1)
    for parameter, piece in zip(parameters, flat.split([p.numel() for p in parameters])):
        parameter.copy_(piece.view_as(parameter))
