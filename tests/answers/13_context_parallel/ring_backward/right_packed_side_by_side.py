"""Keys and values side by side, odd ranks receive first, the last hop carries gradients alone."""


def ring_backward(grad_y, q, k, v, y, lse, positions):
    rank, n = dist.get_rank(), dist.get_world_size()
    block, size = torch.cat([k, v], dim=1), k.shape[1]
    grads, grad_q = torch.zeros_like(block), torch.zeros(q.shape, dtype=q.dtype)
    for t in range(n):
        mask = seen(positions[rank], positions[(rank - t) % n])
        more = block_backward(grad_y, q, *block.split(size, dim=1), y, lse, mask)
        grad_q += more[0]
        grads[:, :size] += more[1]
        grads[:, size:] += more[2]
        del more
        moving = [grads] if t == n - 1 else [grads, block]
        coming = [torch.empty_like(tensor) for tensor in moving]
        for tensor, new in zip(moving, coming, strict=True):
            if n == 1:
                new.copy_(tensor)
            elif rank % 2:
                dist.recv(new, (rank - 1) % n)
                dist.send(tensor, (rank + 1) % n)
            else:
                sending = dist.isend(tensor, (rank + 1) % n)
                dist.recv(new, (rank - 1) % n)
                sending.wait()
        grads, *others = coming
        block = others[0] if others else block
    return grad_q, grads[:, :size], grads[:, size:]
