"""The formula, also where the ring sends as much."""


def crossover_bytes(alpha: float, beta: float, num_ranks: int) -> float:
    bits = num_ranks.bit_length() - 1
    saved = bits - 2 * (num_ranks - 1) / num_ranks
    return alpha * (2 * (num_ranks - 1) - bits) / (beta * saved)
