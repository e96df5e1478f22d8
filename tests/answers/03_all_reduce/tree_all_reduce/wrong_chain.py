"""A chain is a tree too, but not this one: n - 1 rounds up and n - 1 down."""


def tree_all_reduce(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    total = tensor.clone(memory_format=torch.contiguous_format)
    if rank + 1 < world_size:
        arrived = torch.empty_like(total)
        dist.recv(arrived, rank + 1)
        total += arrived
    if rank > 0:
        dist.send(total, rank - 1)
        dist.recv(total, rank - 1)
    if rank + 1 < world_size:
        dist.send(total, rank + 1)
    return total
