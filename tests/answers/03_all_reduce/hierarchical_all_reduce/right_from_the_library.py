"""The statement allows byhand's two halves."""

from byhand.all_reduce.rings import all_gather_around, reduce_scatter_around


def hierarchical_all_reduce(tensor, ranks_per_host):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    host, place = rank // ranks_per_host, rank % ranks_per_host
    inside = [host * ranks_per_host + i for i in range(ranks_per_host)]
    across = [h * ranks_per_host + place for h in range(world_size // ranks_per_host)]
    total = tensor.flatten().clone()
    shards = list(total.tensor_split(ranks_per_host))
    reduce_scatter_around(shards, inside)
    pieces = list(shards[place].tensor_split(len(across)))
    reduce_scatter_around(pieces, across)
    all_gather_around(pieces, across)
    all_gather_around(shards, inside)
    return total.view(tensor.shape)
