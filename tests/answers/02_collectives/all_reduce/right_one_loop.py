"""Both halves in one ring of 2 (n - 1) steps."""


def all_reduce(tensor):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    whole = tensor.flatten().clone()
    shards = whole.tensor_split(world_size)
    for step in range(2 * (world_size - 1)):
        target = shards[(rank - step - 1) % world_size]
        arrived = torch.empty_like(target)
        sending = dist.isend(shards[(rank - step) % world_size], (rank + 1) % world_size)
        dist.recv(arrived, (rank - 1) % world_size)
        sending.wait()
        if step < world_size - 1:
            target += arrived
        else:
            target.copy_(arrived)
    return whole.view_as(tensor)
