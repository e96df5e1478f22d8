"""Blocking calls that do not hang: the first rank receives before it sends."""


def _turn(outgoing, incoming, ranks):
    n, me = len(ranks), ranks.index(dist.get_rank())
    if me == 0:
        dist.recv(incoming, ranks[-1])
        dist.send(outgoing, ranks[1 % n])
    else:
        dist.send(outgoing, ranks[(me + 1) % n])
        dist.recv(incoming, ranks[me - 1])


def reduce_scatter_around(parts, ranks):
    n, me = len(ranks), ranks.index(dist.get_rank())
    for step in range(1, n):
        arrived = torch.empty_like(parts[(me - step - 1) % n])
        _turn(parts[(me - step) % n], arrived, ranks)
        parts[(me - step - 1) % n].add_(arrived)
