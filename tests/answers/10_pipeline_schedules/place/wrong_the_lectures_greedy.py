"""The lecture's greedy loop, which chooses its own order of F and I."""


def place_weight_halves(orders, most, delay):
    p, m = len(orders), 1 + max(i for order in orders for _, i, _ in order)
    schedule, made, route = [[] for _ in range(p)], set(), loop(p)
    urgent = "IFW"
    while min(map(len, schedule)) < 3 * m:
        chosen = {}
        for r in range(p):
            done = [kind for kind, *_ in schedule[r]]
            full = done.count("F") - done.count("W") == most
            able = [(k, done.count(k), 0) for k in urgent if not full or k != "F"]
            able = [
                (k, i, 0)
                for k, i, _ in able
                if i < m and made.issuperset(needs(Action(KINDS[k], i), r, route))
            ]
            chosen |= {r: able[0]} if able else {}
        for r, action in chosen.items():
            schedule[r].append(action)
            made.add(makes(Action(KINDS[action[0]], action[1]), r, route))
    return schedule
