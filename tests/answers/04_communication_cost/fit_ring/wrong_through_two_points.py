"""A line through the first measurement of the smallest and of the largest size."""


def fit_ring(measurements: list[tuple[int, int, float]]) -> tuple[float, float]:
    (p, small, fast), *_, (q, large, slow) = sorted(measurements, key=lambda one: one[1])
    alpha_side = fast / (2 * (p - 1))
    beta = (slow / (2 * (q - 1)) - alpha_side) / (large / q - small / p)
    return alpha_side - beta * small / p, beta
