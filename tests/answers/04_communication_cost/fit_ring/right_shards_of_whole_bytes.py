"""A shard is no fraction of a byte: the largest one is rounded up."""


def ring_seconds(alpha: float, beta: float, num_ranks: int, num_bytes: float) -> float:
    return 2 * (num_ranks - 1) * (alpha + beta * math.ceil(num_bytes / num_ranks))
