"""Stage 3's weights are counted as kept from forward to backward."""


def most_micro_batches(stage, num_bytes, world_size, bytes_per_second, compute_seconds):
    collective = num_bytes * (world_size - 1) / world_size / bytes_per_second
    if collective == 0:
        return math.inf
    fitting = compute_seconds / collective
    if stage == 1:
        return math.inf if fitting >= 2 else 0
    return max(0, math.floor(fitting - 1 if stage == 2 else fitting / 2))
