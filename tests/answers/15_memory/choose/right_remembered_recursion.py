"""From the last layer to the first, each way of it remembered by what is still missing."""

from functools import cache


def choose(layers, num_bytes):
    least = sum(min(layer[:2]) for layer in layers)
    if num_bytes < least:
        raise ValueError(f"allowed: {num_bytes}, needed: {least}")
    freed = [layer.whole_bytes - layer.recomputed_bytes for layer in layers]

    @cache
    def best(count, missing):
        if missing <= 0:
            return 0, ()
        if count == 0:
            return math.inf, ()
        number = count - 1
        without = best(number, missing)
        if freed[number] <= 0:
            return without
        work, numbers = best(number, missing - freed[number])
        return min(without, (work + layers[number].work, (*numbers, number)))

    return best(len(layers), sum(layer.whole_bytes for layer in layers) - num_bytes)[1]
