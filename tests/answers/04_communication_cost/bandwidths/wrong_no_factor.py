"""One bandwidth, twice: busbw without its factor."""


def bandwidths(op: str, num_ranks: int, num_bytes: int, seconds: float) -> tuple[float, float]:
    algbw = num_bytes / seconds / 1e9
    return algbw, algbw
