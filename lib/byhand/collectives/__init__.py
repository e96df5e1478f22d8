"""The collectives by hand: what a broadcast or an all-reduce is made of.

algorithms   each collective from send and recv alone: read this
with_torch   torch's own eight, called alike
lab          what lecture 02 runs and draws
"""

from byhand.collectives.algorithms import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]
