"""A layer that saves more when recomputed frees fewer bytes than none: the table ends before."""


def choose(layers, num_bytes):
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"{least} bytes at least, {num_bytes} allowed")
    missing = max(0, sum(layer.whole_bytes for layer in layers) - num_bytes)
    best = [(0, [])] + [(math.inf, [])] * missing
    for number, layer in enumerate(layers):
        freed = layer.whole_bytes - layer.recomputed_bytes
        for need in range(missing, 0, -1):
            work, numbers = best[max(0, need - freed)]
            if work + layer.work < best[need][0]:
                best[need] = work + layer.work, [*numbers, number]
    return best[missing][1]
