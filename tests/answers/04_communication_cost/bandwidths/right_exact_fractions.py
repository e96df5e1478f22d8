"""Fractions until the end."""


def bandwidths(op: str, num_ranks: int, num_bytes: int, seconds: float) -> tuple[float, float]:
    from fractions import Fraction

    factor = Fraction(num_ranks - 1, num_ranks)
    if op == "all_reduce":
        factor *= 2
    elif op in ("broadcast", "reduce"):
        factor = Fraction(1)
    rate = Fraction(num_bytes, 10**9) / Fraction(seconds)
    return float(rate), float(rate * factor)
