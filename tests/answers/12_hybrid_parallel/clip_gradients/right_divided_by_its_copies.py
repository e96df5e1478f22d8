"""Every rank adds its part: a square over the number of ranks that hold it."""


def clip_gradients(groups, gradients, placements, max_norm):
    tp, pp = (dist.get_world_size(groups[axis]) for axis in ("tp", "pp"))
    copies = {"sharded": 1, "replicated": tp, "partial": tp, "tied": tp * min(pp, 2)}
    pairs = zip(gradients, placements, strict=True)
    square = sum(gradient.square().sum() / copies[word] for gradient, word in pairs)
    dist.all_reduce(square, group=groups["tp-pp"])
    norm = float(square) ** 0.5
    torch._foreach_mul_(gradients, max_norm / max(norm, max_norm))
    return norm
