"""Copies at every turn: each tensor, the padded whole, the gathered pieces; what is kept is k."""


def cut(tensors):
    rank, n = dist.get_rank(), dist.get_world_size()
    flats = [tensor.contiguous().view(-1).clone() for tensor in tensors]
    flat = torch.cat(flats)
    k = math.ceil(flat.numel() / n)
    whole = torch.zeros(k * n, dtype=flat.dtype)
    whole[: flat.numel()] = flat
    return whole.chunk(n)[rank].clone()


def join(shard, shapes):
    parts = [torch.zeros_like(shard) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, shard)
    return [piece.clone() for piece in unpacked(torch.cat(parts), shapes)]
