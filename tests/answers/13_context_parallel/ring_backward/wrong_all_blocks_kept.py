"""All blocks and all their gradients are held until the end, then sent home one by one."""


def ring_backward(grad_y, q, k, v, y, lse, positions):
    rank, n = dist.get_rank(), dist.get_world_size()
    blocks, grad_q, terms = [torch.stack([k, v])], torch.zeros_like(q), []
    for t in range(n):
        mask = seen(positions[rank], positions[(rank - t) % n])
        more_q, *more = block_backward(grad_y, q, *blocks[-1], y, lse, mask)
        grad_q += more_q
        terms.append(torch.stack(more))
        if t < n - 1:
            coming = torch.empty_like(blocks[-1])
            sending = dist.isend(blocks[-1], (rank + 1) % n)
            dist.recv(coming, (rank - 1) % n)
            sending.wait()
            blocks.append(coming)
    total = terms[0]
    for t in range(1, n):
        coming = torch.empty_like(total)
        sending = dist.isend(terms[t], (rank - t) % n)
        dist.recv(coming, (rank + t) % n)
        sending.wait()
        total = total + coming
    return grad_q, total[0], total[1]
