"""Two rings at once, but they are the library's."""

from itertools import zip_longest

from byhand.all_reduce.rings import run_ring


def double_ring_all_reduce(tensor):
    everyone = list(range(dist.get_world_size()))
    total, rounds = tensor.flatten().clone(), range(1, 2 * len(everyone) - 1)
    halves = [half.tensor_split(len(everyone)) for half in total.tensor_split(2)]
    ways = zip(halves, (everyone, everyone[::-1]))
    for _ in zip_longest(*(run_ring(shards, ranks, rounds) for shards, ranks in ways)):
        pass
    return total.reshape(tensor.shape)
