"""Greedy in three orders; then up to two layers for up to two others, while that is cheaper."""

from itertools import chain, combinations


def up_to_two(numbers):
    return list(chain(*(combinations(numbers, k) for k in range(3))))


def cheaper_swap(inside, useful, freed, work, spare):
    ins = [
        (sum(freed[n] for n in some), sum(work[n] for n in some), some)
        for some in up_to_two([n for n in useful if n not in inside])
    ]
    for out in up_to_two(inside):
        less, saved = sum(freed[n] for n in out) - spare, sum(work[n] for n in out)
        for more, cost, some in ins:
            if cost < saved and more >= less:
                return out, some
    return None


def choose(layers, num_bytes):
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"{least} bytes at least, {num_bytes} allowed")
    missing = sum(layer.whole_bytes for layer in layers) - num_bytes
    freed = [layer.whole_bytes - layer.recomputed_bytes for layer in layers]
    work = [layer.work for layer in layers]
    useful = [n for n in range(len(layers)) if freed[n] > 0]
    found = []
    for key in (lambda n: work[n] / freed[n], lambda n: work[n], lambda n: -freed[n]):
        inside, got = set(), 0
        for n in sorted(useful, key=key):
            if got < missing:
                inside.add(n)
                got += freed[n]
        while swap := cheaper_swap(inside, useful, freed, work, got - missing):
            inside = inside - set(swap[0]) | set(swap[1])
            got = sum(freed[n] for n in inside)
        found.append((sum(work[n] for n in inside), sorted(inside)))
    return min(found)[1]
