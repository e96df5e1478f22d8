"""W is copied; V's columns are a view, which keeps all of V alive."""


def heads_shard(qkv, qkv_bias, out, out_bias):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    return [
        qkv.unflatten(0, (3, world_size, -1))[:, rank].flatten(0, 1).clone(),
        qkv_bias.unflatten(0, (3, world_size, -1))[:, rank].flatten().clone(),
        out.chunk(world_size, dim=1)[rank],
        out_bias.clone(),
    ]
