"""Cuts the 3·D rows of queries, keys and values into n runs: rank 0 then has queries only."""


def heads_shard(qkv, qkv_bias, out, out_bias):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    rows = qkv.chunk(world_size)[rank].clone(), qkv_bias.chunk(world_size)[rank].clone()
    return *rows, out.chunk(world_size, dim=1)[rank].clone(), out_bias.clone()
