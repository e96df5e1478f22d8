"""busbw as bytes on the wire per rank, by the library's own count; a list."""


def bandwidths(op: str, num_ranks: int, num_bytes: int, seconds: float) -> tuple[float, float]:
    from byhand.communication_cost import bus_bandwidth

    return [1e-9 * num_bytes / seconds, bus_bandwidth(op, num_ranks, num_bytes, seconds) * 1e-9]
