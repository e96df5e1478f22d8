"""All-reduce by hand: ring, trees, doubling, and in two levels for hosts with a slow link between.

rings       the ring, all of it: read this first
algorithms  every algorithm as rounds of transfers, and the proof that it sums. Pure
trees       those of a logarithmic number of rounds. Pure
running     carries out any algorithm, round by round: the functions below
lab         what lecture 03 runs, draws and lets one play with
"""

from byhand.all_reduce.rings import ring_all_reduce
from byhand.all_reduce.running import (
    double_ring_all_reduce,
    double_tree_all_reduce,
    halving_doubling_all_reduce,
    hierarchical_all_reduce,
    recursive_doubling_all_reduce,
    ring_all_gather,
    ring_reduce_scatter,
    tree_all_reduce,
)

__all__ = [
    "double_ring_all_reduce",
    "double_tree_all_reduce",
    "halving_doubling_all_reduce",
    "hierarchical_all_reduce",
    "recursive_doubling_all_reduce",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_reduce_scatter",
    "tree_all_reduce",
]
