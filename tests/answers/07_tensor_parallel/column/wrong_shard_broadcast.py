"""Rank 0's weight is broadcast first, though it is equal on every rank already."""


def column_shard(weight, bias):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    dist.broadcast(weight, src=0)
    return weight.chunk(world_size)[rank].clone(), bias.chunk(world_size)[rank].clone()
