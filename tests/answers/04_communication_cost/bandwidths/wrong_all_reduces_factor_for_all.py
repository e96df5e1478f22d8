"""2(n-1)/n whatever the collective."""


def bandwidths(op: str, num_ranks: int, num_bytes: int, seconds: float) -> tuple[float, float]:
    algbw = num_bytes / seconds / 1e9
    return algbw, algbw * 2 * (num_ranks - 1) / num_ranks
