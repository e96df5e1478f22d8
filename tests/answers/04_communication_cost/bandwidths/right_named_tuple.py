"""A tuple whose members have names."""


def bandwidths(op: str, num_ranks: int, num_bytes: int, seconds: float) -> tuple[float, float]:
    from collections import namedtuple

    share = (num_ranks - 1) / num_ranks
    factor = {"all_reduce": 2 * share, "broadcast": 1.0, "reduce": 1.0}.get(op, share)
    algbw = num_bytes / seconds / 1e9
    return namedtuple("Bandwidths", "algbw busbw")(algbw, algbw * factor)
