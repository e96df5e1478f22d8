"""The best interval by a fixed point, and the better of the steps on both sides of it."""


def best_steps(step_seconds, save_seconds, restart_seconds, mean):
    interval = math.sqrt(2 * save_seconds * mean)
    for _ in range(100_000):
        interval = mean * (1 - math.exp(-(interval + save_seconds) / mean))
    below = max(1, int(interval / step_seconds))
    return max(below, below + 1, key=lambda k: goodput(k * step_seconds, save_seconds, 0.0, mean))
