"""exp without a maximum: large scores overflow."""


def ring_forward(q, k, v, positions):
    rank, n = dist.get_rank(), dist.get_world_size()
    block, total = torch.stack([k, v]), 0
    y = torch.zeros_like(q)
    for t in range(n):
        weights = block_scores(q, block[0], seen(positions[rank], positions[(rank - t) % n])).exp()
        total = total + weights.sum(dim=1)
        y = y + weights @ block[1]
        if t < n - 1:
            coming = torch.empty_like(block)
            sending = dist.isend(block, (rank + 1) % n)
            dist.recv(coming, (rank - 1) % n)
            sending.wait()
            block = coming
    return y / total[:, None], total.log()
