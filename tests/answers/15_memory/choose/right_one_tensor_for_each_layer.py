"""The least work for each number of bytes saved, in tensors; the way is read backwards."""


def choose(layers, num_bytes):
    most = sum(max(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    rows = [torch.full((most + 1,), math.inf, dtype=torch.float64)]
    rows[0][0] = 0
    for whole, again, work in layers:
        ways = [rows[-1].roll(whole), rows[-1].roll(again) + work]  # nothing rolls over: most
        rows.append(torch.minimum(*ways))
    finite = rows[-1].isfinite().nonzero().flatten().tolist()
    if finite[0] > num_bytes:
        raise ValueError(f"{num_bytes} are allowed, and {finite[0]} are the least")
    saved = min((s for s in finite if s <= num_bytes), key=lambda s: float(rows[-1][s]))
    chosen = []
    for number in reversed(range(len(layers))):
        whole, again, work = layers[number]
        kept = rows[number][saved - whole] if saved >= whole else math.inf
        if kept == rows[number + 1][saved]:
            saved -= whole
        else:
            saved -= again
            chosen.append(number)
    return tuple(chosen)
