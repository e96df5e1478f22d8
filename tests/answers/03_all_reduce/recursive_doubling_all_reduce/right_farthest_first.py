"""Distances 4, 2, 1; the lower rank of a pair sends first, so blocking calls do."""


def recursive_doubling_all_reduce(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    power = 2 ** (world_size.bit_length() - 1)
    total = tensor.clone(memory_format=torch.contiguous_format)
    if rank >= power:
        dist.send(total, rank - power)
        dist.recv(total, rank - power)
        return total
    arrived = torch.empty_like(total)
    if rank + power < world_size:
        dist.recv(arrived, rank + power)
        total = total + arrived
    distance = power // 2
    while distance:
        peer = rank ^ distance
        if rank < peer:
            dist.send(total, peer)
            dist.recv(arrived, peer)
        else:
            dist.recv(arrived, peer)
            dist.send(total, peer)
        total = total + arrived
        distance //= 2
    if rank + power < world_size:
        dist.send(total, rank + power)
    return total
