"""The sends are started, and nobody waits for them."""


def recursive_doubling_all_reduce(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    power = 1 << (world_size.bit_length() - 1)
    total = tensor.clone(memory_format=torch.contiguous_format)
    arrived = torch.empty_like(total)
    if rank >= power:
        dist.send(total, rank - power)
        dist.recv(total, rank - power)
        return total
    if rank + power < world_size:
        dist.recv(arrived, rank + power)
        total += arrived
    distance = 1
    while distance < power:
        dist.isend(total, rank ^ distance)
        dist.recv(arrived, rank ^ distance)
        total += arrived
        distance *= 2
    if rank + power < world_size:
        dist.send(total, rank + power)
    return total
