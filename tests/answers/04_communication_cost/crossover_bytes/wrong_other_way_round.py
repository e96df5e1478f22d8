"""Alpha and beta change places."""


def crossover_bytes(alpha: float, beta: float, num_ranks: int) -> float:
    bits = num_ranks.bit_length() - 1
    saved = bits - 2 * (num_ranks - 1) / num_ranks
    if saved <= 0:
        return math.inf
    return beta * (2 * (num_ranks - 1) - bits) / (alpha * saved)
