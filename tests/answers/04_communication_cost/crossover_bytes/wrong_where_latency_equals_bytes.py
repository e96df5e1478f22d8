"""The size at which the ring's own two terms are equal."""


def crossover_bytes(alpha: float, beta: float, num_ranks: int) -> float:
    return alpha * num_ranks / beta if num_ranks > 2 else math.inf
