"""Bisection in an interval that ends too soon: beyond it the ring is said never to win."""


def crossover_bytes(alpha: float, beta: float, num_ranks: int) -> float:
    low, high = 0.0, 1e9
    for _ in range(100):
        middle = (low + high) / 2
        ring, doubling = (
            all_reduce_seconds(name, alpha, beta, num_ranks, middle)
            for name in ("ring", "recursive_doubling")
        )
        low, high = (middle, high) if ring >= doubling else (low, middle)
    return high if high < 1e9 else math.inf
