"""Bits, as on the network card's box."""


def bandwidths(op: str, num_ranks: int, num_bytes: int, seconds: float) -> tuple[float, float]:
    share = (num_ranks - 1) / num_ranks
    factor = {"all_reduce": 2 * share, "broadcast": 1.0, "reduce": 1.0}.get(op, share)
    algbw = 8 * num_bytes / seconds / 1e9
    return algbw, algbw * factor
