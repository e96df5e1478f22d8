"""Forgets the ring's second half, the all-gather."""


def all_reduce_seconds(
    algorithm: str, alpha: float, beta: float, num_ranks: int, num_bytes: float
) -> float:
    bits, share = num_ranks.bit_length() - 1, (num_ranks - 1) / num_ranks
    rounds, passed = {
        "ring": (num_ranks - 1, share * num_bytes),
        "recursive_doubling": (bits, bits * num_bytes),
        "halving_doubling": (2 * bits, 2 * share * num_bytes),
    }[algorithm]
    return alpha * rounds + beta * passed
