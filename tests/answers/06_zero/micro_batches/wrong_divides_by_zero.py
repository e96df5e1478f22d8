"""One rank alone sends nothing, and is divided by."""


def most_micro_batches(stage, num_bytes, world_size, bytes_per_second, compute_seconds):
    fitting = compute_seconds / (num_bytes * (world_size - 1) / world_size / bytes_per_second)
    if stage == 1:
        return math.inf if fitting >= 2 else 0
    return max(0, math.floor(fitting - 1 if stage == 2 else fitting / 3))
