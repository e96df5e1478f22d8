"""Waiting for what other processes do, without a clock: that of the whole test ends it."""

import time
from collections.abc import Callable
from typing import Any


def wait_until(condition: Callable[[], Any]) -> Any:
    """Return what the condition gives, once that is true; pytest's own limit ends it otherwise."""
    while not (found := condition()):
        time.sleep(0.02)
    return found
