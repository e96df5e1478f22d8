"""A broadcast counted as if each rank got a shard."""


def bandwidths(op: str, num_ranks: int, num_bytes: int, seconds: float) -> tuple[float, float]:
    share = (num_ranks - 1) / num_ranks
    algbw = num_bytes / seconds / 1e9
    return algbw, algbw * (2 * share if op == "all_reduce" else share)
