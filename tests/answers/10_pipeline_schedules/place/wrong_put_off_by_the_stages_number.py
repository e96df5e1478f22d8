"""ZB-H1's rule for 1F1B, W put off by r micro-batches, for whatever order."""


def place_weight_halves(orders, most, delay):
    placed = []
    for stage, order in enumerate(orders):
        mine, late = [], []
        for kind, i, chunk in order:
            mine.append(("F" if kind == "F" else "I", i, chunk))
            if kind == "B":
                late.append(("W", i, chunk))
                if len(late) > stage:
                    mine.append(late.pop(0))
        placed.append(mine + late)
    return placed
