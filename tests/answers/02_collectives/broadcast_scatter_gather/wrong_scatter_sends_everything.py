"""Broadcasts the whole tensor, and every rank keeps its shard."""


def scatter(tensor, root):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    whole = broadcast(tensor, root)
    return whole.tensor_split(world_size)[rank].clone()
