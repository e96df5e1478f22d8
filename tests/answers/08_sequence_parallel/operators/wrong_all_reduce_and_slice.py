"""The right tokens of the right sum, at twice the bytes."""


def to_shard(x):
    total = x.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total.chunk(dist.get_world_size(), dim=1)[dist.get_rank()]
