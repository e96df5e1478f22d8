"""No failure strikes during a restart."""


def goodput(interval, save_seconds, restart_seconds, mean):
    x = (interval + save_seconds) / mean
    if x > 700:
        return 0.0
    return interval / ((mean + restart_seconds) * math.expm1(x))
