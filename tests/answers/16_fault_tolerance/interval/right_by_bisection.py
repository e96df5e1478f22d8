"""The optimum by halving: does one more step help? Lost is what saves and restarts leave."""


def lost(interval, save_seconds, restart_seconds, mean):
    x, r = (interval + save_seconds) / mean, math.exp(-restart_seconds / mean)
    return r - (x * r / math.expm1(x) if x < 500 else 0)


def best_steps(step_seconds, save_seconds, restart_seconds, mean):
    def rises(steps):
        here, there = (
            goodput(n * step_seconds, save_seconds, 0.0, mean) for n in (steps, steps + 1)
        )
        return there > here

    low, high = 0, 20_000  # rises at low, falls at high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return high
