"""The lecture's two lines: alpha from the smallest size, beta from the largest; no medians."""


def fit_ring(measurements: list[tuple[int, int, float]]) -> tuple[float, float]:
    p, _, fast = min(measurements, key=lambda one: one[1])
    q, large, slow = max(measurements, key=lambda one: one[1])
    alpha = fast / (2 * (p - 1))
    return alpha, (slow - 2 * (q - 1) * alpha) / (2 * (q - 1) / q * large)
