"""Six micro-batches instead of eight."""


def own_schedule():
    route, num_chunks, most, send = [0, 1, 2, 3, 0, 1, 2, 3], 2, 8, 0.1
    last, cost = len(route) - 1, 1 / num_chunks
    chunk_of = [route[:place].count(stage) for place, stage in enumerate(route)]
    orders, free, held = [[] for _ in range(4)], [0.0] * 4, [0] * 4
    possible = {("F", i, 0): 0.0 for i in range(6)}  # and from when on, by part of the model

    def rank(action):
        kind, i, place = action
        start = max(free[route[place]], possible[action])
        return start, "IFW".index(kind), -place if kind == "F" else i, i

    def has_room(action):
        kind, _, place = action
        needed = num_chunks - chunk_of[place]  # by this micro-batch, until it turns back
        return kind != "F" or held[route[place]] + needed <= most

    while possible:
        action = min(filter(has_room, possible), key=rank)
        start, *_ = rank(action)
        kind, i, place = action
        stage, end = route[place], start + cost
        del possible[action]
        free[stage] = end
        held[stage] += {"F": 1, "I": 0, "W": -1}[kind]
        orders[stage].append((kind, i, chunk_of[place]))
        after = place + {"F": 1, "I": -1, "W": 0}[kind]
        if kind == "I":
            possible["W", i, place] = end
        if after > last:
            possible["I", i, place] = end
        elif kind != "W" and after >= 0:
            possible[kind, i, after] = end + send * (route[after] != stage)
    return route, orders
