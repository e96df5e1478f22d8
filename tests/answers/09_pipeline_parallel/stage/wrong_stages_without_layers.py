"""More stages than layers are not refused: some stages are empty."""


def partition(num_layers, num_stages):
    size, extra = divmod(num_layers, num_stages)
    parts, start = [], 0
    for stage in range(num_stages):
        stop = start + size + (stage < extra)
        parts.append(range(start, stop))
        start = stop
    return parts
