"""Lists by rank and by expert, made by loops; y by einsum."""


def to_experts(x, chosen, home):
    n, top_k = dist.get_world_size(), chosen.shape[1]
    asked = [[e for e in range(len(home)) if home[e] == r] for r in range(n)]
    mine, flat = torch.tensor(asked[dist.get_rank()], dtype=torch.int64), chosen.reshape(-1)
    where = [[torch.where(flat == e)[0] for e in experts] for experts in asked]
    counts = torch.tensor([len(one) for some in where for one in some], dtype=torch.int64)
    coming = torch.empty(n, len(mine), dtype=torch.int64)
    numbers = [len(experts) for experts in asked]
    dist.all_to_all_single(coming.view(-1), counts, [len(mine)] * n, numbers)
    order = torch.cat([one for some in where for one in some])
    sends = [sum(len(one) for one in some) for some in where]
    receives = [int(some.sum()) for some in coming]
    rows = x.new_empty(sum(receives), x.shape[1])
    dist.all_to_all_single(rows, x[order // top_k], receives, sends)
    wanted = torch.cat([mine.repeat_interleave(some) for some in coming])
    return rows, wanted, {"order": order, "there": (sends, receives)}


def from_experts(made, weights, saved):
    sends, receives = saved["there"]
    back = made.new_empty(sum(sends), made.shape[1])
    splits = {"output_split_sizes": sends, "input_split_sizes": receives}
    dist.all_to_all_single(back, made.contiguous(), **splits, async_op=True).wait()
    y = made.new_zeros(weights.numel(), made.shape[1])
    y[saved["order"]] = back
    return torch.einsum("tk,tkd->td", weights, y.view(*weights.shape, made.shape[1]))
