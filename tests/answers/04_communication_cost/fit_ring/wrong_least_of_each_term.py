"""Each number by itself, as if a message paid only for its start or only for its bytes."""


def fit_ring(measurements: list[tuple[int, int, float]]) -> tuple[float, float]:
    alpha = min(t / (2 * (p - 1)) for p, _, t in measurements)
    beta = min(t / (2 * (p - 1) * m / p) for p, m, t in measurements)
    return alpha, beta
