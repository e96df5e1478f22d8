"""Greedy, and what turns out to be needless is dropped again."""


def choose(layers, num_bytes):
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"{least} bytes at least, {num_bytes} allowed")
    freed = [layer.whole_bytes - layer.recomputed_bytes for layer in layers]
    held = sum(layer.whole_bytes for layer in layers)
    useful = [number for number in range(len(layers)) if freed[number] > 0]
    chosen = []
    for number in sorted(useful, key=lambda n: layers[n].work / freed[n]):
        if held > num_bytes:
            held -= freed[number]
            chosen.append(number)
    for number in sorted(chosen, key=lambda n: -layers[n].work):
        if held + freed[number] <= num_bytes:
            held += freed[number]
            chosen.remove(number)
    return chosen
