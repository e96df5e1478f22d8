"""On a V: each choice is played to its end greedily, and the best one taken; all in tuples."""


def own_schedule():
    route, most, send = (0, 1, 2, 3, 3, 2, 1, 0), 8, 0.1

    def options(done):
        """What could be next: (start, urgency, kind, micro-batch, place)."""
        ends, free, held = {}, [0.0] * 4, [0] * 4
        for start, _, kind, i, g in done:
            ends[kind, i, g] = free[route[g]] = start + 0.5
            held[route[g]] += (kind == "F") - (kind == "W")
        found = []
        for g in range(8):
            stage = route[g]
            for kind in "IFW":
                i = next((i for i in range(8) if (kind, i, g) not in ends), None)
                if i is None or (kind == "F" and held[stage] + (2 if g < 4 else 1) > most):
                    continue
                needed = {"F": [("F", i, g - 1)], "I": [("F", i, g), ("I", i, g + 1)]}
                needed = needed.get(kind, [("I", i, g)])
                needed = [need for need in needed if 0 <= need[2] < 8]
                if not all(need in ends for need in needed):
                    continue
                times = [ends[n] + send * (route[n[2]] != stage) for n in needed]
                start = max([free[stage], *times])
                urgent = "IFW".index(kind), -g if kind == "F" else i
                found.append((start, urgent, kind, i, g))
        return sorted(found)

    def greedy(done):
        done = list(done)
        while left := options(done):
            done.append(left[0])
        return done

    def seconds(done):
        return max(start for start, *_ in done)

    done = []
    best = greedy(done)
    for _ in range(24):  # from there on, the best end that was seen
        ends = []
        for option in options(done)[:3]:
            ends.append(greedy([*done, option]))
        best = min([best, *ends], key=seconds)
        done = best[: len(done) + 8]
    orders = tuple(
        tuple((k, i, int(g > 3)) for _, _, k, i, g in best if route[g] == s) for s in range(4)
    )
    return route, orders
