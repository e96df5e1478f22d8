"""The blocks' results are averaged, whatever their weight."""


def ring_forward(q, k, v, positions):
    rank, n = dist.get_rank(), dist.get_world_size()
    block, ys, lses = torch.stack([k, v]), [], []
    for t in range(n):
        scores = block_scores(q, block[0], seen(positions[rank], positions[(rank - t) % n]))
        ys.append(scores.softmax(dim=1).nan_to_num() @ block[1])
        lses.append(scores.logsumexp(dim=1))
        if t < n - 1:
            coming = torch.empty_like(block)
            sending = dist.isend(block, (rank + 1) % n)
            dist.recv(coming, (rank - 1) % n)
            sending.wait()
            block = coming
    return torch.stack(ys).mean(dim=0), torch.stack(lses).logsumexp(dim=0)
