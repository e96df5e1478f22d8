"""Blocking calls again: a thread sends while the rank itself receives."""

import threading


def _turn(outgoing, incoming, ranks):
    n, me = len(ranks), ranks.index(dist.get_rank())
    thread = threading.Thread(target=dist.send, args=(outgoing, ranks[(me + 1) % n]))
    thread.start()
    dist.recv(incoming, ranks[me - 1])
    thread.join()


def reduce_scatter_around(parts, ranks):
    n, me = len(ranks), ranks.index(dist.get_rank())
    for step in range(1, n):
        arrived = torch.empty_like(parts[(me - step - 1) % n])
        _turn(parts[(me - step) % n], arrived, ranks)
        parts[(me - step - 1) % n].add_(arrived)


def all_gather_around(parts, ranks):
    n, me = len(ranks), ranks.index(dist.get_rank())
    for step in range(n - 1):
        _turn(parts[(me - step) % n], parts[(me - step - 1) % n], ranks)
