"""What is not kept is lost: saves that succeed and restarts among it."""


def lost(interval, save_seconds, restart_seconds, mean):
    return 1 - goodput(interval, save_seconds, restart_seconds, mean)
