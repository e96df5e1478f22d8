"""A W only where a forward finds no room, and what is left at the end."""


def place_weight_halves(orders, most, delay):
    placed = []
    for order in orders:
        mine, late, held = [], [], 0
        for kind, i, chunk in order:
            if kind == "B":
                mine.append(("I", i, chunk))
                late.append(("W", i, chunk))
                continue
            if held == most:
                mine.append(late.pop(0))
                held -= 1
            mine.append(("F", i, chunk))
            held += 1
        placed.append(mine + late)
    return placed
