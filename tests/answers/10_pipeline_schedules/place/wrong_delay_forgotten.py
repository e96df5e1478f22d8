"""The rule, as if messages took no time."""


def place_weight_halves(orders, most, delay):
    num_chunks = 1 + max(chunk for order in orders for _, _, chunk in order)
    route, made, p = loop(len(orders), num_chunks), {}, len(orders)
    queues = [[("F" if kind == "F" else "I", i, c) for kind, i, c in o] for o in orders]
    late, held, placed, turn = [[] for _ in orders], [0] * p, [[] for _ in orders], 0

    def arrived(action, r):
        kind, i, c = action
        found = needs(Action(KINDS[kind], i, c), r, route)
        return all(made.get(product, turn) < turn for product in found)

    while any(queues) or any(late):
        chosen = {}
        for r in range(p):
            if (
                queues[r]
                and arrived(queues[r][0], r)
                and (queues[r][0][0] == "I" or held[r] < most)
            ):
                chosen[r] = queues[r].pop(0)
            elif late[r]:
                chosen[r] = late[r].pop(0)
        for r, (kind, i, c) in chosen.items():
            placed[r].append((kind, i, c))
            held[r] += {"F": 1, "I": 0, "W": -1}[kind]
            if kind == "I":
                late[r].append(("W", i, c))
            if kind != "W":
                made[makes(Action(KINDS[kind], i, c), r, route)] = turn
        turn += 1
    return placed
