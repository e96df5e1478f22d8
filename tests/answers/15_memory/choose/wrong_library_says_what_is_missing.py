"""The library refuses what cannot be, with a message of its own."""

from byhand.memory.choice import missing_bytes


def choose(layers, num_bytes):
    missing = max(0, missing_bytes(layers, num_bytes))
    best = [(0, [])] + [(math.inf, [])] * missing
    for number, layer in enumerate(layers):
        freed = max(0, layer.whole_bytes - layer.recomputed_bytes)
        for need in range(missing, 0, -1):
            work, numbers = best[max(0, need - freed)]
            if work + layer.work < best[need][0]:
                best[need] = work + layer.work, [*numbers, number]
    return best[missing][1]
