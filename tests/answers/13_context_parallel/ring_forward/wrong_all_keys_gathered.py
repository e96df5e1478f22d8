"""Every rank ends with all keys and values."""


def ring_forward(q, k, v, positions):
    rank, n = dist.get_rank(), dist.get_world_size()
    blocks = [torch.stack([k, v])]
    for _ in range(n - 1):
        coming = torch.empty_like(blocks[-1])
        sending = dist.isend(blocks[-1], (rank + 1) % n)
        dist.recv(coming, (rank - 1) % n)
        sending.wait()
        blocks.append(coming)
    keys, values = torch.cat(blocks, dim=1)
    theirs = torch.cat([positions[(rank - t) % n] for t in range(n)])
    scores = block_scores(q, keys, seen(positions[rank], theirs))
    return scores.softmax(dim=1) @ values, scores.logsumexp(dim=1)
