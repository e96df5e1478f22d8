"""Young's interval, rounded to steps."""


def best_steps(step_seconds, save_seconds, restart_seconds, mean):
    return max(1, round(math.sqrt(2 * save_seconds * mean) / step_seconds))
