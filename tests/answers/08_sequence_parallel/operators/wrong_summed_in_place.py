"""The caller's tensor becomes the sum."""


def to_shard(x):
    dist.all_reduce(x)
    return x.chunk(dist.get_world_size(), dim=1)[dist.get_rank()].clone()
