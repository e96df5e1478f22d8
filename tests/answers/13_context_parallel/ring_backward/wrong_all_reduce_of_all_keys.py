"""The gradients of all keys on every rank, summed by an all-reduce."""


def ring_backward(grad_y, q, k, v, y, lse, positions):
    rank, n = dist.get_rank(), dist.get_world_size()
    block, grad_q = torch.stack([k, v]), torch.zeros_like(q)
    everybodys = block.new_zeros(n, *block.shape)
    for t in range(n):
        owner = (rank - t) % n
        mask = seen(positions[rank], positions[owner])
        more_q, *more = block_backward(grad_y, q, *block, y, lse, mask)
        grad_q += more_q
        everybodys[owner] += torch.stack(more)
        if t < n - 1:
            coming = torch.empty_like(block)
            sending = dist.isend(block, (rank + 1) % n)
            dist.recv(coming, (rank - 1) % n)
            sending.wait()
            block = coming
    dist.all_reduce(everybodys)
    return grad_q, everybodys[rank][0].clone(), everybodys[rank][1].clone()
