"""The library's own robust fit."""


def fit_ring(measurements: list[tuple[int, int, float]]) -> tuple[float, float]:
    from byhand.communication_cost import cost
    from byhand.communication_cost.fit import fit

    measurements = sorted(measurements, key=lambda one: one[2])
    repeated = {}
    for p, m, t in measurements:
        repeated.setdefault((p, m), []).append(t)
    costs = [cost("ring", p, m) for p, m in repeated]
    line = fit(costs, [times[2] for times in repeated.values()]).line
    return line.alpha, line.beta
