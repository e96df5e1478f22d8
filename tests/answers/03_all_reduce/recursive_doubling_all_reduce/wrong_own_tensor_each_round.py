"""Sends its own tensor in every round, not the sum so far: half of the terms never travel."""


def recursive_doubling_all_reduce(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    power = 1 << (world_size.bit_length() - 1)
    mine = tensor.clone(memory_format=torch.contiguous_format)
    arrived = torch.empty_like(mine)
    if rank >= power:
        dist.send(mine, rank - power)
        dist.recv(mine, rank - power)
        return mine
    if rank + power < world_size:
        dist.recv(arrived, rank + power)
        mine += arrived
    total, distance = mine.clone(), 1
    while distance < power:
        sending = dist.isend(mine, rank ^ distance)
        dist.recv(arrived, rank ^ distance)
        sending.wait()
        total += arrived
        distance *= 2
    if rank + power < world_size:
        dist.send(total, rank + power)
    return total
