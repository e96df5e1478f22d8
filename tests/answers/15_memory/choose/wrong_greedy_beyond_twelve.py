"""Every choice is tried for up to twelve layers; longer chains get the greedy one."""

import itertools


def choose(layers, num_bytes):
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"{least} bytes at least, {num_bytes} allowed")
    freed = [layer.whole_bytes - layer.recomputed_bytes for layer in layers]
    held, numbers = sum(layer.whole_bytes for layer in layers), range(len(layers))
    if len(layers) <= 12:
        every = itertools.chain(*(itertools.combinations(numbers, k) for k in range(13)))
        fits = [some for some in every if held - sum(freed[n] for n in some) <= num_bytes]
        return list(min(fits, key=lambda some: sum(layers[n].work for n in some)))
    chosen = []
    for number in sorted(numbers, key=lambda n: layers[n].work / max(freed[n], 1e-9)):
        if held > num_bytes:
            held -= freed[number]
            chosen.append(number)
    return chosen
