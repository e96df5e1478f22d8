"""In each step the messages one way are waited for before those the other way are started."""


def double_ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = tensor.flatten().clone()
    halves = [list(half.tensor_split(n)) for half in total.tensor_split(2)]
    for step in range(1, 2 * n - 1):
        for shards, place, way in ((halves[0], rank, 1), (halves[1], -rank, -1)):
            own = shards[(place - step - 1) % n]
            arrived = torch.empty_like(own)
            calls = [
                dist.P2POp(dist.isend, shards[(place - step) % n], (rank + way) % n),
                dist.P2POp(dist.irecv, arrived, (rank - way) % n),
            ]
            for message in dist.batch_isend_irecv(calls):
                message.wait()
            own.copy_(own + arrived if step < n else arrived)
    return total.reshape(tensor.shape)
