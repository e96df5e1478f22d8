"""How often to save: what saving costs against what a failure loses, and the best between. Pure.

    young, daly    the interval in closed form, first order and higher
    best           the exact one, of `goodput`
    goodput        the fraction of the time that brings training on, expected
    simulate       a year of it, failure by failure, and where the time went
    between        seconds between failures of so many GPUs, at a published rate

τ, the interval, is the work between two saves; δ, a save, is the time for which training waits; M
is the mean time between failures; R, a restart, is the time from a failure until training goes on.

Young. A second of training costs δ/τ seconds of saving. A failure comes once in M seconds, on
average in the middle of an interval, so it loses τ/2: another τ/2M. The sum δ/τ + τ/2M is least
where both are equal: τ = √(2δM). So a save that takes a quarter of the time halves the interval,
and what is lost besides: √(2δ/M) of the time.

Daly. A failure can also strike while a save is under way or during a restart, and in an interval
that is tried again. Failures that forget (exponential times) let one write it down. An interval
succeeds after τ + δ without a failure, and takes M·e^(R/M)·(e^((τ+δ)/M) - 1) seconds on average,
all that was tried in vain included. Goodput is τ over that. R changes the goodput, and not the best
interval: where the derivative is zero, τ = M (1 - e^(-(τ+δ)/M)), in which there is no R.

Four things of practice are arguments, and no other code:

    an asynchronous save     δ is the copy alone; on its way to the disk for L seconds, it counts
                             for nothing yet: a failure loses L more on average, so R grows by L
    a hot spare              R shrinks by the wait for a machine
    a neighbour's memory     δ and R shrink: a save is one message, and so is a load
    fewer, better machines   M grows: it is inverse to their number

Sources: Young 1974, doi:10.1145/361147.361115; Daly 2006, doi:10.1016/j.future.2004.11.016.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

HOUR, DAY, YEAR = 3600.0, 86400.0, 365 * 86400.0


class Rate(NamedTuple):
    """Failures that stopped a job of so many GPUs, in so many days."""

    failures: float
    num_gpus: int
    days: float
    source: str


RATES = {
    "Llama 3 405B": Rate(419, 16384, 54, "arXiv:2407.21783, section 3.3.4: unexpected ones, H100"),
    "Meta RSC-1": Rate(6.50, 8000, 1, "arXiv:2410.21680: 6.50 in 1000 node-days of 8 A100"),
}
# MegaScale (arXiv:2402.15627, section 6.3) prints no rate: more than 100 restarts in "several
# weeks" on more than 10 000 GPUs; less than 10 minutes to notice and to diagnose, back where it was
# within 15; more than 90 % of the time effective. Llama 3 names more than 90 %, too.


def between(num_gpus: int, rate: Rate) -> float:
    """Seconds between failures of a job on so many GPUs: half as many fail half as often.

    >>> f"{between(16384, RATES['Llama 3 405B']) / 3600:.1f} h"
    '3.1 h'
    """
    return rate.days * DAY / rate.failures * rate.num_gpus / num_gpus


def young(save_seconds: float, seconds_between_failures: float) -> float:
    """√(2δM): good where a save is short beside M.

    >>> round(young(save_seconds=60, seconds_between_failures=6 * 3600))
    1610
    """
    return math.sqrt(2 * save_seconds * seconds_between_failures)


def daly(save_seconds: float, seconds_between_failures: float) -> float:
    """Young's with two terms more, less the save itself; M where a save takes 2M or longer.

    >>> round(daly(save_seconds=60, seconds_between_failures=6 * 3600))
    1570
    """
    ratio = save_seconds / (2 * seconds_between_failures)
    if ratio >= 1:
        return seconds_between_failures
    series = 1 + math.sqrt(ratio) / 3 + ratio / 9
    return young(save_seconds, seconds_between_failures) * series - save_seconds


def best(save_seconds: float, seconds_between_failures: float) -> float:
    """The interval of the greatest goodput, whatever a restart takes.

    τ = M (1 - e^(-(τ+δ)/M)), found by halving: below the best, the right side is the larger.

    >>> round(best(save_seconds=60, seconds_between_failures=6 * 3600))
    1570
    """
    mean, low, high = seconds_between_failures, 0.0, seconds_between_failures
    for _ in range(60):
        middle = (low + high) / 2
        if middle < -mean * math.expm1(-(middle + save_seconds) / mean):
            low = middle
        else:
            high = middle
    return high


def goodput(
    interval: float,
    save_seconds: float,
    restart_seconds: float,
    seconds_between_failures: float,
) -> float:
    """The expected fraction of the time that is useful: neither saving, nor lost, nor restarting.

    interval: seconds of work between two saves.

    >>> every = best(60, 6 * 3600)
    >>> [f"{goodput(often * every, 60, 300, 6 * 3600):.1%}" for often in (1 / 4, 1, 4)]
    ['84.7%', '91.5%', '84.0%']
    """
    mean = seconds_between_failures
    exponent = (interval + save_seconds) / mean
    if exponent + restart_seconds / mean > 700:  # e^700: it never ends
        return 0.0
    return interval / (mean * math.exp(restart_seconds / mean) * math.expm1(exponent))


class Times(NamedTuple):
    """Where the seconds of a run went, and how often it failed.

    >>> Times(useful=90.0, saving=4.0, lost=5.0, restarting=1.0, failures=2).goodput
    0.9
    """

    useful: float
    saving: float
    lost: float
    restarting: float
    failures: int

    @property
    def goodput(self) -> float:
        """The useful fraction of all."""
        return self.useful / (self.useful + self.saving + self.lost + self.restarting)


def simulate(
    interval: float,
    save_seconds: float,
    restart_seconds: float,
    seconds_between_failures: float,
    seconds: float = YEAR,
    seed: int = 0,
) -> Times:
    """So many seconds of training in which failures come at random, exponentially.

    A failure loses what was done since the last save ended, and a save under way with it. One that
    strikes in a restart begins it again. What is unsaved at the end is useful.

    >>> times = simulate(1600, 60, 300, seconds_between_failures=6 * 3600)
    >>> times.failures, f"{times.goodput:.1%}"
    (1445, '91.6%')
    """
    draw = random.Random(seed)
    useful = saving = lost = restarting = 0.0
    failures, left = 0, seconds
    while True:
        alive = draw.expovariate(1 / seconds_between_failures)
        restart = min(restart_seconds if failures else 0.0, alive, left)
        restarting += restart
        working = min(alive, left) - restart
        saves = working // (interval + save_seconds)
        unsaved = working - saves * (interval + save_seconds)
        useful, saving = useful + saves * interval, saving + saves * save_seconds
        if alive >= left:
            last = min(unsaved, interval)
            return Times(useful + last, saving + unsaved - last, lost, restarting, failures)
        lost, left, failures = lost + unsaved, left - alive, failures + 1
