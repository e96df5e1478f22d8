"""The sum of part j ends on rank j - 1: the all-gather hides it, the half does not."""


def reduce_scatter_around(parts, ranks):
    n, me = len(ranks), ranks.index(dist.get_rank())
    for step in range(n - 1):
        growing = parts[(me - step - 1) % n]
        arrived = torch.empty_like(growing)
        sending = dist.isend(parts[(me - step) % n], ranks[(me + 1) % n])
        dist.recv(arrived, ranks[(me - 1) % n])
        sending.wait()
        growing += arrived


def all_gather_around(parts, ranks):
    n, me = len(ranks), ranks.index(dist.get_rank())
    for step in range(n - 1):
        sending = dist.isend(parts[(me - step + 1) % n], ranks[(me + 1) % n])
        dist.recv(parts[(me - step) % n], ranks[(me - 1) % n])
        sending.wait()
