"""The bias is shared out like the weight, as in a column-parallel layer."""


def row_shard(weight, bias):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    share = torch.zeros_like(bias)
    rows = torch.arange(len(bias)).tensor_split(world_size)[rank]
    share[rows] = bias[rows]
    return weight.chunk(world_size, dim=1)[rank].clone(), share
