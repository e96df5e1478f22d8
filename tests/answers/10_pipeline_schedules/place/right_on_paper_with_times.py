"""Keeps when each product was made instead of turns, and the last W in a stack of numbers."""


def place_weight_halves(orders, most, delay):
    p = len(orders)
    v = 1 + max(chunk for order in orders for _, _, chunk in order)
    made = {}  # (kind, micro-batch, part of the model) -> when
    todo = [[("I" if k == "B" else k, i, c) for k, i, c in order] for order in orders]
    out, late, held = [[] for _ in orders], [[] for _ in orders], [0] * p
    turn = 0
    while any(todo) or any(late):
        for r in range(p):
            if todo[r]:
                k, i, c = todo[r][0]
                part = c * p + r
                if k == "F":
                    before = [("F", i, part - 1)] if part else []
                else:
                    before = [("F", i, part)] + ([("I", i, part + 1)] if part < p * v - 1 else [])
                ok = all(made.get(b, turn) + delay * (b[2] % p != r) < turn for b in before)
                if ok and (k == "I" or held[r] < most):
                    todo[r].pop(0)
                    made[k, i, part] = turn
                    out[r].append((k, i, c))
                    held[r] += k == "F"
                    late[r] += [(i, c)] if k == "I" else []
                    continue
            if late[r]:
                out[r].append(("W", *late[r].pop(0)))
                held[r] -= 1
        turn += 1
    return out
