"""Every round added up by itself."""


def all_reduce_seconds(
    algorithm: str, alpha: float, beta: float, num_ranks: int, num_bytes: float
) -> float:
    seconds = 0.0
    if algorithm == "ring":
        for _ in range(2 * (num_ranks - 1)):
            seconds += alpha + beta * num_bytes / num_ranks
        return seconds
    distance = 1
    while distance < num_ranks:
        if algorithm == "recursive_doubling":
            seconds += alpha + beta * num_bytes
        else:
            seconds += 2 * (alpha + beta * num_bytes * distance / num_ranks)
        distance *= 2
    return seconds
