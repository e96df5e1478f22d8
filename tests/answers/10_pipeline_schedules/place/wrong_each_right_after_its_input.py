"""Each W follows its I at once: a whole backward in two words."""


def place_weight_halves(orders, most, delay):
    placed = []
    for order in orders:
        mine = []
        for kind, i, chunk in order:
            mine += [("F", i, chunk)] if kind == "F" else [("I", i, chunk), ("W", i, chunk)]
        placed.append(mine)
    return placed
