"""Depth first; what the rest costs at least, fractions of a layer allowed, cuts branches off."""


def choose(layers, num_bytes):
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"cannot go below {least} bytes; cap is {num_bytes}")
    freed = [layer.whole_bytes - layer.recomputed_bytes for layer in layers]
    items = [(freed[n], layers[n].work, n) for n in range(len(layers)) if freed[n] > 0]
    items.sort(key=lambda item: item[1] / item[0])
    best = [math.inf, []]

    def bound(at, missing):
        work = 0
        for gain, more, _ in items[at:]:
            if missing <= 0:
                return work
            if gain >= missing:
                return work + more * missing / gain
            work, missing = work + more, missing - gain
        return work if missing <= 0 else math.inf

    def go(at, missing, work, chosen):
        if missing <= 0:
            if work < best[0]:
                best[:] = work, chosen
            return
        if at == len(items) or work + bound(at, missing) - 1e-9 > best[0] - 1:
            return
        gain, more, number = items[at]
        go(at + 1, missing - gain, work + more, [*chosen, number])
        go(at + 1, missing, work, chosen)

    go(0, sum(layer.whole_bytes for layer in layers) - num_bytes, 0, [])
    return best[1]
