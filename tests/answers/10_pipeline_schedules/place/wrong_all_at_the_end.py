"""Every W at the end: nothing waits for it, but memory does."""


def place_weight_halves(orders, most, delay):
    placed = []
    for order in orders:
        halves = [("I" if kind == "B" else kind, i, chunk) for kind, i, chunk in order]
        placed.append(halves + [("W", i, chunk) for kind, i, chunk in order if kind == "B"])
    return placed
