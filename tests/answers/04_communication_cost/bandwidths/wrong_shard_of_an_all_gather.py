"""The size of an all-gather taken as each rank's shard."""


def bandwidths(op: str, num_ranks: int, num_bytes: int, seconds: float) -> tuple[float, float]:
    share = (num_ranks - 1) / num_ranks
    factor = {"all_reduce": 2 * share, "broadcast": 1.0, "reduce": 1.0}.get(op, share)
    if op in ("all_gather", "reduce_scatter"):
        num_bytes /= num_ranks
    algbw = num_bytes / seconds / 1e9
    return algbw, algbw * factor
