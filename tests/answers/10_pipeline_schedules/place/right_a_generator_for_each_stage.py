"""Each stage is a generator that gives one action a turn, or None."""


def place_weight_halves(orders, most, delay):
    v = len({chunk for _, _, chunk in orders[0]})
    route, made, now = loop(len(orders), v), {}, [0]

    def stage_of(r):
        held, late = 0, []
        for kind, i, c in orders[r]:
            kind = "I" if kind == "B" else kind
            action = Action(KINDS[kind], i, c)
            wanted = needs(action, r, route)

            def arrives(product):
                return made.get(product, 10**9) + 1 + delay * (route[product.place] != r)

            while any(arrives(p) > now[0] for p in wanted) or (kind == "F" and held == most):
                held -= bool(late)
                yield ("W", *late.pop(0)) if late else None
            made[makes(action, r, route)] = now[0]
            held += kind == "F"
            if kind == "I":
                late.append((i, c))
            yield kind, i, c
        for rest in late:
            yield "W", *rest

    stages, done = [stage_of(r) for r in range(len(orders))], [[] for _ in orders]
    while now[0] < 10**4:
        acts = [next(stage, "end") for stage in stages]
        if set(acts) == {"end"}:
            break
        for order, act in zip(done, acts):
            if act not in (None, "end"):
                order.append(act)
        now[0] += 1
    return done
