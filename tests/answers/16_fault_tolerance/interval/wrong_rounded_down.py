"""The best interval of all, rounded down to steps: none at all where a step is long."""


def best_steps(step_seconds, save_seconds, restart_seconds, mean):
    interval = math.sqrt(2 * save_seconds * mean)
    for _ in range(500):
        interval = mean * (1 - math.exp(-(interval + save_seconds) / mean))
    return int(interval / step_seconds)
