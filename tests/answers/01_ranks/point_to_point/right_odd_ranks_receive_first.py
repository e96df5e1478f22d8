"""Works for an odd number of ranks too, as some rank always receives first."""


def shift(rank, world_size, tensor):
    if world_size == 1:
        return tensor.clone()
    arrived = torch.empty(tensor.shape, dtype=tensor.dtype)
    for turn in range(2):
        if turn == rank % 2:
            dist.send(tensor.contiguous(), (rank + 1) % world_size)
        else:
            dist.recv(arrived, (rank - 1) % world_size)
    return arrived


def running_total(rank, world_size, count):
    total = torch.zeros_like(count)
    if rank:
        dist.irecv(total, rank - 1).wait()
    total = total + count
    if rank + 1 != world_size:
        dist.isend(total, rank + 1).wait()
    return total
