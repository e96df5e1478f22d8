"""Only a bandwidth, from the largest size."""


def fit_ring(measurements: list[tuple[int, int, float]]) -> tuple[float, float]:
    repeated = {}
    for num_ranks, num_bytes, seconds in measurements:
        repeated.setdefault((num_ranks, num_bytes), []).append(seconds)
    p, m = max(repeated, key=lambda case: case[1])
    return 0.0, statistics.median(repeated[p, m]) / (2 * (p - 1) * m / p)
