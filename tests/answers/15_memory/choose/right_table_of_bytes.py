"""The knapsack's table: for each number of bytes still missing, the least work."""


def choose(layers, num_bytes):
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"{least} bytes at least, {num_bytes} allowed")
    missing = max(0, sum(layer.whole_bytes for layer in layers) - num_bytes)
    rows = [[0] + [math.inf] * missing]
    for layer in layers:
        freed, row = max(0, layer.whole_bytes - layer.recomputed_bytes), rows[-1]
        with_it = [row[max(0, need - freed)] + layer.work for need in range(missing + 1)]
        rows.append([min(pair) for pair in zip(row, with_it)])
    chosen, need = set(), missing
    for number in reversed(range(len(layers))):
        if rows[number + 1][need] != rows[number][need]:
            chosen.add(number)
            need = max(0, need - layers[number].whole_bytes + layers[number].recomputed_bytes)
    return chosen
