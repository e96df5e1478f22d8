"""The right values by a tree: ranks wait while others talk."""


def recursive_doubling_all_reduce(tensor):
    return _tree(tensor)


def _tree(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    total = tensor.clone(memory_format=torch.contiguous_format)
    arrived = torch.empty_like(total)
    children = [child for child in (2 * rank + 1, 2 * rank + 2) if child < world_size]
    for child in children:
        dist.recv(arrived, child)
        total += arrived
    if rank > 0:
        dist.send(total, (rank - 1) // 2)
        dist.recv(total, (rank - 1) // 2)
    for child in children:
        dist.send(total, child)
    return total
