"""A scatter of the library's from each rank in turn, which the statement rules out as well."""

from byhand.collectives import scatter


def all_to_all(tensor):
    return torch.cat([scatter(tensor, root) for root in range(dist.get_world_size())])
