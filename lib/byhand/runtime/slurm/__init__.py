"""`launch(..., launcher="slurm")`: the ranks of a launch on the nodes of a Slurm allocation.

The function, its arguments, its results and its errors are the same as on one machine. Rank 0 is
on the first node, neighbours are on the same node, and each node has as many ranks as the others
or one more. A launch is one `srun` of this module, which takes seconds: on each node it starts a
fork server, and forks that node's ranks. They meet in a folder that all nodes share, made in the
current directory (or in BYHAND_SHARED) and removed afterwards:

    request      the call of each rank, and how to run it
    store        where the ranks find each other
    master       node 0's address and a free port, for a store of the program's own
    node.K       all that node K's ranks write and return: messages of kind, rank, value, pickled

What the notebook has to say goes through srun's standard input: a line asks for the ranks' stacks,
and its end, which comes with the notebook's, ends every process on the nodes. Times are those of
the nodes' own clocks, so far as these agree.
"""

from __future__ import annotations

import time


def placement(world_size: int, num_nodes: int) -> list[int]:
    """The node of each rank: neighbours together, as many on each node as on the others, or 1 more.

    >>> placement(5, 2)
    [0, 0, 0, 1, 1]
    """
    each, more = divmod(world_size, num_nodes)
    return [node for node in range(num_nodes) for _ in range(each + (node < more))]


def epoch() -> float:
    """When this machine's monotonic clock began, by its clock of the day."""
    return time.time() - time.monotonic()
