"""By bytes freed for their work, until it fits."""


def choose(layers, num_bytes):
    held = sum(layer.whole_bytes for layer in layers)
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"{least} bytes at least, {num_bytes} allowed")
    freed = [layer.whole_bytes - layer.recomputed_bytes for layer in layers]
    useful = [number for number in range(len(layers)) if freed[number] > 0]
    chosen = []
    for number in sorted(useful, key=lambda n: layers[n].work / freed[n]):
        if held <= num_bytes:
            break
        held -= freed[number]
        chosen.append(number)
    return chosen
