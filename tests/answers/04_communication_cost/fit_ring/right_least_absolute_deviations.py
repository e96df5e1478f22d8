"""Sums of absolute relative errors, made small by weights that are drawn up anew."""


def fit_ring(measurements: list[tuple[int, int, float]]) -> tuple[float, float]:
    alpha = min(t / (2 * (p - 1)) for p, _, t in measurements)
    beta = min(t / (2 * (p - 1) * m / p) for p, m, t in measurements)
    for _ in range(60):
        rr = rb = bb = rt = bt = 0.0
        for p, m, t in measurements:
            r, b = 2 * (p - 1), 2 * (p - 1) * m / p
            guess = alpha * r + beta * b
            w = 1 / (guess**2 * max(abs(t / guess - 1), 1e-3))
            rr, rb, bb = rr + w * r * r, rb + w * r * b, bb + w * b * b
            rt, bt = rt + w * r * t, bt + w * b * t
        alpha = max((bb * rt - rb * bt) / (rr * bb - rb * rb), 1e-9)
        beta = max((rr * bt - rb * rt) / (rr * bb - rb * rb), 1e-15)
    return alpha, beta
