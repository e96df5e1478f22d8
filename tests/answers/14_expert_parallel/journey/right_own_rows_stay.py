"""Only rows of others travel, saved is a function, and one rank alone makes no calls."""


def to_experts(x, chosen, home):
    n, rank, top_k = dist.get_world_size(), dist.get_rank(), chosen.shape[1]
    flat = chosen.reshape(-1)
    held = [(home == r).nonzero()[:, 0] for r in range(n)]
    others, mine = [r for r in range(n) if r != rank], held[rank]
    where = [[(flat == e).nonzero()[:, 0] for e in experts] for experts in held]
    counts = [torch.tensor([len(one) for one in some], dtype=torch.int64) for some in where]
    where = [torch.cat([flat[:0], *some]) for some in where]
    own = where[rank]
    order = torch.cat([flat[:0], *(where[r] for r in others)])
    coming = flat.new_empty(len(others), len(mine))
    sends = [len(one) * (r != rank) for r, one in enumerate(where)]
    receives = [0] * n
    rows = x.new_empty(0, x.shape[1])
    if others:
        told = torch.cat([counts[r] for r in others])
        splits = [len(one) * (r != rank) for r, one in enumerate(held)]
        into = [len(mine) * (r != rank) for r in range(n)]
        dist.all_to_all_single(coming.view(-1), told, into, splits)
        for r, some in zip(others, coming, strict=True):
            receives[r] = int(some.sum())
        rows = x.new_empty(sum(receives), x.shape[1])
        dist.all_to_all_single(rows, x[order // top_k].contiguous(), receives, sends)
    numbers = [mine.repeat_interleave(some) for some in (counts[rank], *coming)]

    def bring_home(made, weights):
        back = made.new_empty(len(order), made.shape[1])
        if others:
            dist.all_to_all_single(back, made[len(own) :].contiguous(), sends, receives)
        terms = made.new_zeros(weights.numel(), made.shape[1])
        terms[own], terms[order] = made[: len(own)], back
        return (weights[..., None] * terms.view(*weights.shape, made.shape[1])).sum(dim=1)

    return torch.cat([x[own // top_k], rows]), torch.cat(numbers), bring_home


def from_experts(made, weights, saved):
    return saved(made, weights)
