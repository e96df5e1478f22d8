"""Plain irecv and isend; the receives are started first, and the sends waited for first."""


def double_ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = tensor.flatten().clone()
    first, second = (half.tensor_split(n) for half in total.tensor_split(2))
    for step in range(1, 2 * n - 1):
        a, b = first[(rank - step - 1) % n], second[(-rank - step - 1) % n]
        from_before, from_next = torch.empty_like(a), torch.empty_like(b)
        receives = [
            dist.irecv(from_before, (rank - 1) % n),
            dist.irecv(from_next, (rank + 1) % n),
        ]
        sends = [
            dist.isend(first[(rank - step) % n], (rank + 1) % n),
            dist.isend(second[(-rank - step) % n], (rank - 1) % n),
        ]
        for work in sends + receives:
            work.wait()
        if step < n:
            a += from_before
            b += from_next
        else:
            a.copy_(from_before)
            b.copy_(from_next)
    return total.reshape(tensor.shape)
