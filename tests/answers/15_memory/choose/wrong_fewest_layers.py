"""The largest first: the fewest layers, whatever they cost."""


def choose(layers, num_bytes):
    held = sum(layer.whole_bytes for layer in layers)
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"{least} bytes at least, {num_bytes} allowed")
    freed = [layer.whole_bytes - layer.recomputed_bytes for layer in layers]
    chosen = []
    for number in sorted(range(len(layers)), key=lambda n: -freed[n]):
        if held <= num_bytes:
            break
        held -= freed[number]
        chosen.append(number)
    return chosen
