"""Steps are counted in a global, which two scales share."""

COUNT = [0]


def next_scale(scale, steps, taken, growth, backoff, every):
    COUNT[0] = COUNT[0] + 1 if taken else 0
    if not taken:
        return scale * backoff, 0
    if COUNT[0] == every:
        COUNT[0] = 0
        return scale * growth, 0
    return scale, COUNT[0]
