"""The crossover by halving an interval until it is found."""


def crossover_bytes(alpha: float, beta: float, num_ranks: int) -> float:
    def ring_is_slower(num_bytes):
        ring, doubling = (
            all_reduce_seconds(name, alpha, beta, num_ranks, num_bytes)
            for name in ("ring", "recursive_doubling")
        )
        return ring >= doubling

    low, high = 0.0, 1e30
    if num_ranks <= 2:
        return math.inf
    for _ in range(300):
        middle = (low + high) / 2
        low, high = (middle, high) if ring_is_slower(middle) else (low, middle)
    return high
