"""Daly's interval in closed form, rounded to steps."""


def best_steps(step_seconds, save_seconds, restart_seconds, mean):
    ratio = save_seconds / (2 * mean)
    interval = math.sqrt(2 * save_seconds * mean) * (1 + math.sqrt(ratio) / 3 + ratio / 9)
    return max(1, round((interval - save_seconds) / step_seconds))
