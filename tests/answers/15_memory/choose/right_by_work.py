"""For each total of work, the fewest bytes that a choice of that work saves."""


def choose(layers, num_bytes):
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"{num_bytes} bytes are allowed, and {least} are held at least")
    fewest = {0: (sum(layer.whole_bytes for layer in layers), 0)}
    for k, layer in enumerate(layers):
        for work, (held, which) in list(fewest.items()):
            other = held - layer.freed_bytes, which | 1 << k
            fewest[work + layer.work] = min(
                other,
                fewest.get(work + layer.work, other) if layer.work else (held, which),
            )
    work = min(work for work, (held, _) in fewest.items() if held <= num_bytes)
    return {k for k in range(len(layers)) if fewest[work][1] >> k & 1}
