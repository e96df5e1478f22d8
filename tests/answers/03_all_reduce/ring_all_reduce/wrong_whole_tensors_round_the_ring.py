"""A ring, but of whole tensors: right values, n / 2 times the bytes."""


def ring_all_reduce(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    total = tensor.clone(memory_format=torch.contiguous_format)
    passing = total.clone()
    for _ in range(world_size - 1):
        arrived = torch.empty_like(passing)
        sending = dist.isend(passing, (rank + 1) % world_size)
        dist.recv(arrived, (rank - 1) % world_size)
        sending.wait()
        total += arrived
        passing = arrived
    return total
