"""The shard that is being sent is overwritten before its send is waited for."""


def double_ring_all_reduce(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = tensor.flatten().clone()
    halves = [list(half.tensor_split(n)) for half in total.tensor_split(2)]
    for step in range(1, 2 * n - 1):
        sends = []
        for shards, place, way in ((halves[0], rank, 1), (halves[1], -rank, -1)):
            sent, own = shards[(place - step) % n], shards[(place - step - 1) % n]
            arrived = torch.empty_like(own)
            receiving = dist.irecv(arrived, (rank - way) % n)
            sends.append(dist.isend(sent, (rank + way) % n))
            receiving.wait()
            own.copy_(own + arrived if step < n else arrived)
            if step < n:
                sent.zero_()  # it is the next rank's now
        for work in sends:
            work.wait()
    return total.reshape(tensor.shape)
