"""Who talks to whom: the groups of ranks that Megatron builds, from degrees and an order.

mesh             ranks as an array with named axes: read this first. Pure
grid             rank_groups, and RankGrid for a million ranks. Pure
process_groups   the one place where lists of ranks become process groups
traffic          what a step sends from host to host. Pure
lab              what lecture 11 counts and lets one drag
"""

from byhand.rank_groups.grid import AXES, NAMES, ORDER, RankGrid, rank_groups

__all__ = ["AXES", "NAMES", "ORDER", "RankGrid", "rank_groups"]
