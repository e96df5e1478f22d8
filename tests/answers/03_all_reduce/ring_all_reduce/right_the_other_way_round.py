"""The ring to the left, by batches, and both halves in one loop."""


def _around(parts, ranks, first, adds):
    n, me = len(ranks), ranks.index(dist.get_rank())
    for step in range(first, first + n - 1):
        outgoing, place = parts[(me + step) % n], parts[(me + step + 1) % n]
        arrived = torch.empty_like(place)
        calls = [
            dist.P2POp(dist.isend, outgoing, ranks[(me - 1) % n]),
            dist.P2POp(dist.irecv, arrived, ranks[(me + 1) % n]),
        ]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
        place.copy_(place + arrived if adds else arrived)


def reduce_scatter_around(parts, ranks):
    _around(parts, ranks, 1, adds=True)


def all_gather_around(parts, ranks):
    _around(parts, ranks, 0, adds=False)
