"""One micro-batch is given even where its messages do not hide."""


def most_micro_batches(stage, num_bytes, world_size, bytes_per_second, compute_seconds):
    collective = num_bytes * (world_size - 1) / world_size / bytes_per_second
    if collective == 0 or stage == 1:
        return math.inf
    fitting = compute_seconds / collective
    return max(1, math.floor(fitting - 1 if stage == 2 else fitting / 3))
