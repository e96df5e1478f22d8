"""Stage 2's sums are counted once a step."""


def most_micro_batches(stage, num_bytes, world_size, bytes_per_second, compute_seconds):
    collective = num_bytes * (world_size - 1) / world_size / bytes_per_second
    if collective == 0:
        return math.inf
    fitting = compute_seconds / collective
    if stage in (1, 2):
        return math.inf if fitting >= 2 else 0
    return math.floor(fitting / 3)
