"""Attempts, one after another: how many fail, what each loses, and how often a restart is begun."""


def mean_seconds(failures, days, num_gpus, job_gpus):
    of_one_gpu = days * 24 * 60 * 60 * num_gpus / failures
    return of_one_gpu / job_gpus


def goodput(interval, save_seconds, restart_seconds, mean):
    x = interval + save_seconds

    def through(seconds):
        """Failed tries until one lasts so long, and the time that all of them take."""
        try:
            fails = math.expm1(seconds / mean)
        except OverflowError:
            return math.inf, math.inf
        lost = mean - seconds / fails if fails else 0.0  # a try that fails, on average
        return fails, fails * lost + seconds

    fails, seconds = through(x)
    restarting = through(restart_seconds)[1] if restart_seconds else 0.0
    if math.inf in (fails, restarting):
        return 0.0
    return interval / (seconds + fails * restarting)


def best_steps(step_seconds, save_seconds, restart_seconds, mean):
    tries = range(1, 10_001)
    return max(tries, key=lambda k: goodput(k * step_seconds, save_seconds, 0.0, mean))


def lost(interval, save_seconds, restart_seconds, mean):
    x = (interval + save_seconds) / mean
    if x > 700:  # nothing is ever done: what is no restart is lost
        return math.exp(-restart_seconds / mean)
    fails = math.expm1(x)
    try:
        restarts = fails * mean * math.expm1(restart_seconds / mean)
    except OverflowError:
        return 0.0
    tries = fails * (mean - x * mean / fails)
    return tries / (tries + x * mean + restarts)
