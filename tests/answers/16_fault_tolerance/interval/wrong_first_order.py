"""Young's sum of two costs, which holds where failures are rare."""


def goodput(interval, save_seconds, restart_seconds, mean):
    lost = save_seconds / interval + (interval / 2 + restart_seconds) / mean
    return max(0.0, 1 - lost)
