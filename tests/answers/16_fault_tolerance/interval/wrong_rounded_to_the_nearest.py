"""The best interval of all, and then the nearest step, though goodput is no mirror of itself."""


def best_steps(step_seconds, save_seconds, restart_seconds, mean):
    interval = math.sqrt(2 * save_seconds * mean)
    for _ in range(5000):
        interval = mean * (1 - math.exp(-(interval + save_seconds) / mean))
    return max(1, round(interval / step_seconds))
