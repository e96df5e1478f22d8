"""A loop of two that begins on stage 3; the last backward is whole where its halves meet."""


def own_schedule():
    route = [3, 2, 1, 0, 3, 2, 1, 0]
    todo = {("F", i, 0): 0.0 for i in range(8)}
    orders, free, held = {s: [] for s in range(4)}, [0.0] * 4, [0] * 4
    while todo:
        best = None
        for (kind, i, g), ready in todo.items():
            s, chunk = route[g], g // 4
            if kind == "F" and held[s] > 6 + chunk:
                continue
            key = max(free[s], ready), "IFW".index(kind), -g if kind == "F" else i, i, g, kind
            best = key if best is None or key < best else best
        start, _, _, i, g, kind = best
        s, chunk = route[g], g // 4
        del todo[kind, i, g]
        end = free[s] = start + 0.5
        orders[s].append((kind, i, chunk))
        held[s] += {"F": 1, "I": 0, "W": -1}[kind]
        if kind == "F":
            todo["F" if g < 7 else "I", i, min(g + 1, 7)] = end + (0.1 if g < 7 else 0.0)
        elif kind == "I":
            todo["W", i, g] = end
            if g:
                todo["I", i, g - 1] = end + 0.1
    last = orders[0]
    if last[-1][0] == "W" and last[-2] == ("I", *last[-1][1:]):
        last[-2:] = [("B", *last[-1][1:])]
    return route, [orders[s] for s in range(4)]
