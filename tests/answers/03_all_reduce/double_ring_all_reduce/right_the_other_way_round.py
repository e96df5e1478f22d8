"""The first half goes round backwards, the second forwards."""


def double_ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = tensor.flatten().clone()
    backwards, forwards = (half.tensor_split(n) for half in total.tensor_split(2))
    for step in range(1, 2 * n - 1):
        calls, arriving = [], []
        for shards, place, way in ((backwards, -rank, -1), (forwards, rank, 1)):
            own = shards[(place - step - 1) % n]
            arriving.append((own, torch.empty_like(own)))
            sent = shards[(place - step) % n]
            calls += [
                dist.P2POp(dist.irecv, arriving[-1][1], (rank - way) % n),
                dist.P2POp(dist.isend, sent, (rank + way) % n),
            ]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
        for own, arrived in arriving:
            own.copy_(own + arrived if step < n else arrived)
    return total.reshape(tensor.shape)
