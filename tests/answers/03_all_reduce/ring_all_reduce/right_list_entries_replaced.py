"""The halves put new tensors into the list, and the result is put together from them."""


def reduce_scatter_around(parts, ranks):
    n, me = len(ranks), ranks.index(dist.get_rank())
    for step in range(1, n):
        j = (me - step - 1) % n
        arrived = torch.empty_like(parts[j])
        sending = dist.isend(parts[(me - step) % n], ranks[(me + 1) % n])
        dist.recv(arrived, ranks[(me - 1) % n])
        sending.wait()
        parts[j] = parts[j] + arrived


def all_gather_around(parts, ranks):
    n, me = len(ranks), ranks.index(dist.get_rank())
    for step in range(n - 1):
        j = (me - step - 1) % n
        arrived = torch.empty_like(parts[j])
        sending = dist.isend(parts[(me - step) % n], ranks[(me + 1) % n])
        dist.recv(arrived, ranks[(me - 1) % n])
        sending.wait()
        parts[j] = arrived


def ring_all_reduce(tensor):
    n = dist.get_world_size()
    parts = list(tensor.clone().flatten().tensor_split(n))
    reduce_scatter_around(parts, list(range(n)))
    all_gather_around(parts, list(range(n)))
    return torch.cat(parts).reshape(tensor.shape)
