"""Waits for the parent's total before sending the parent its own sum."""


def tree_all_reduce(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    total = tensor.clone(memory_format=torch.contiguous_format)
    children = [child for child in (2 * rank + 1, 2 * rank + 2) if child < world_size]
    arrived = torch.empty_like(total)
    if rank > 0:
        dist.recv(arrived, (rank - 1) // 2)
        dist.send(total, (rank - 1) // 2)
        total = arrived
    for child in children:
        dist.recv(arrived, child)
        total += arrived
    for child in children:
        dist.send(total, child)
    return total
