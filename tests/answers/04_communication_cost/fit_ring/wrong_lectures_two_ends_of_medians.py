"""The lecture's two ends, of medians: alpha from the smallest size, as if it had no bytes."""


def fit_ring(measurements: list[tuple[int, int, float]]) -> tuple[float, float]:
    repeated = {}
    for num_ranks, num_bytes, seconds in measurements:
        repeated.setdefault((num_ranks, num_bytes), []).append(seconds)
    p, small = min(repeated, key=lambda case: case[1])
    q, large = max(repeated, key=lambda case: case[1])
    alpha = statistics.median(repeated[p, small]) / (2 * (p - 1))
    rest = statistics.median(repeated[q, large]) / (2 * (q - 1)) - alpha
    return alpha, rest / (large / q)
