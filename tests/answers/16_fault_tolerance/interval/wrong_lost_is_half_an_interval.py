"""Each failure is said to lose half an interval, as where failures are rare."""


def lost(interval, save_seconds, restart_seconds, mean):
    return min(1.0, interval / (2 * mean))
