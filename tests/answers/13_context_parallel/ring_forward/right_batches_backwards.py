"""Round the ring the other way, keys and values apart, in batches."""


def ring_forward(q, k, v, positions):
    rank, n = dist.get_rank(), dist.get_world_size()
    k, v = k.contiguous(), v.contiguous()
    largest = q.new_full((len(q), 1), -1e30)
    total, weighted = q.new_zeros(len(q), 1), torch.zeros_like(q)
    for t in range(n):
        owner = (rank + t) % n
        works, following = [], None
        if t + 1 < n:
            following = [torch.empty_like(k), torch.empty_like(v)]
            asked = [dist.P2POp(dist.isend, tensor, (rank - 1) % n) for tensor in (k, v)]
            asked += [dist.P2POp(dist.irecv, tensor, (rank + 1) % n) for tensor in following]
            works = dist.batch_isend_irecv(asked)
        x = block_scores(q, k, seen(positions[rank], positions[owner]))
        new = torch.maximum(largest, x.amax(dim=1, keepdim=True))
        total = (largest - new).exp() * total + (x - new).exp().sum(dim=1, keepdim=True)
        weighted = (largest - new).exp() * weighted + (x - new).exp() @ v
        largest = new
        for work in works:
            work.wait()
        if following:
            k, v = following
    return weighted / total, (largest + total.log()).squeeze(1)
