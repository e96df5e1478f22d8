"""Both receives are started, and then both sends block, one after the other."""


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
        dist.send(first[(rank - step) % n], (rank + 1) % n)
        dist.send(second[(-rank - step) % n], (rank - 1) % n)
        for work in receives:
            work.wait()
        a.copy_(a + from_before if step < n else from_before)
        b.copy_(b + from_next if step < n else from_next)
    return total.reshape(tensor.shape)
