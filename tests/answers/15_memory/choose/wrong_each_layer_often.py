"""The table is walked while it grows: a layer is recomputed more than once."""


def choose(layers, num_bytes):
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"{least} bytes at least, {num_bytes} allowed")
    missing = max(0, sum(layer.whole_bytes for layer in layers) - num_bytes)
    best = [(0, [])] + [(math.inf, [])] * missing
    for number, layer in enumerate(layers):
        freed = layer.whole_bytes - layer.recomputed_bytes
        if freed <= 0:
            continue
        for need in range(1, missing + 1):
            work, numbers = best[max(0, need - freed)]
            if work + layer.work < best[need][0]:
                best[need] = work + layer.work, [*numbers, number]
    return sorted(set(best[missing][1]))
