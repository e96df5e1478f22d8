"""A collective instead of a ring."""


def ring_forward(q, k, v, positions):
    n = dist.get_world_size()
    blocks = [torch.empty(2, *k.shape, dtype=k.dtype) for _ in range(n)]
    dist.all_gather(blocks, torch.stack([k, v]).contiguous())
    keys, values = torch.cat(blocks, dim=1)
    scores = block_scores(q, keys, seen(positions[dist.get_rank()], torch.cat(positions)))
    return scores.softmax(dim=1) @ values, scores.logsumexp(dim=1)
