"""Checks that exercises are graded with: values, communication, and memory, by rank.

A test cell launches a driver, works out what is expected, and asks:

    with check.part("three ranks, odd sizes"):
        tensors = [check.whole_numbers(5) for rank in range(3)]
        run = launch(drive, 3, args=(PerRank(tensors),))
        check.results(run, [sum(tensors)] * 3, what="all_reduce's result")
        check.communication(run, send=4, recv=4)

Every check passes silently or raises CheckError, whose message names the part, the ranks, what
was got and what was expected. Inputs are random, but every part draws the same ones again each
time it runs with the same seed, whatever ran before it.
"""

from byhand.check.drivers import AUTOGRAD, finished_sends, locked
from byhand.check.errors import CheckError
from byhand.check.parts import (
    board,
    part,
    random,
    set_seed,
    take_board,
    whole_numbers,
)
from byhand.check.traffic import (
    bytes_between_hosts,
    collectives,
    communication,
    messages,
    peak_bytes,
    sent_bytes,
)
from byhand.check.values import changed, close, equal, results, that

__all__ = [
    "AUTOGRAD",
    "CheckError",
    "board",
    "bytes_between_hosts",
    "changed",
    "close",
    "collectives",
    "communication",
    "equal",
    "finished_sends",
    "locked",
    "messages",
    "part",
    "peak_bytes",
    "random",
    "results",
    "sent_bytes",
    "set_seed",
    "take_board",
    "that",
    "whole_numbers",
]
