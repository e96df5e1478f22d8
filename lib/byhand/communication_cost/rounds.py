"""Every collective and all-reduce as rounds of messages: who sends how much to whom. Pure.

A round is a list of messages that travel at once; the next begins when all have arrived. Pure
integers and bytes: the same rounds are priced on any network (networks), added up by link, or
drawn. n ranks, S bytes. The algorithms are those of communication_cost.cost; where
byhand.all_reduce has an algorithm, its transfers are the messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from byhand.all_reduce import algorithms, trees
from byhand.all_reduce.algorithms import Algorithm
from byhand.communication_cost.model import check_counts


class Message(NamedTuple):
    """`num_bytes` from rank `sender` to rank `receiver`."""

    sender: int
    receiver: int
    num_bytes: float


Rounds = list[list[Message]]


def rounds(algorithm: str, num_ranks: int, num_bytes: float, ranks_per_host: int = 1) -> Rounds:
    """The messages of one call, round by round; none for one rank. Roots are rank 0.

    ranks_per_host: for hierarchical, hosts filled in rank order.

    Raises:
        ValueError: as communication_cost.cost.
    """
    check_counts(algorithm, num_ranks, num_bytes, ranks_per_host)
    n, s = num_ranks, num_bytes
    if n == 1:
        return []
    if algorithm == "hierarchical":
        return of_algorithm(algorithms.hierarchical(n, ranks_per_host), s)
    if algorithm in _ALGORITHMS:
        return of_algorithm(_ALGORITHMS[algorithm](n), s)
    return _PLAIN[algorithm](n, s)


def of_algorithm(algorithm: Algorithm, num_bytes: float) -> Rounds:
    """An algorithm's transfers as messages; the pieces of a tensor of `num_bytes` are equal."""
    piece = num_bytes / algorithm.num_pieces
    return [
        [Message(t.sender, t.receiver, (t.stop - t.start) * piece) for t in transfers]
        for transfers in algorithm.rounds
    ]


def _all_to_all(n: int, s: float) -> Rounds:
    return [[Message(r, (r + k) % n, s / n) for r in range(n)] for k in range(1, n)]


def _direct(n: int, s: float) -> Rounds:
    """Every rank to all others at once: a reduce-scatter, then an all-gather."""
    return [[message for messages in _all_to_all(n, s) for message in messages]] * 2


_ALGORITHMS: dict[str, Callable[[int], Algorithm]] = {
    "all_gather": algorithms.ring_all_gather,
    "reduce_scatter": algorithms.ring_reduce_scatter,
    "all_reduce": algorithms.ring,
    "ring": algorithms.ring,
    "double_ring": algorithms.double_ring,
    "tree": trees.tree,
    "double_tree": trees.double_tree,
    "recursive_doubling": trees.recursive_doubling,
    "halving_doubling": trees.halving_doubling,
}
_PLAIN: dict[str, Callable[[int, float], Rounds]] = {
    "send": lambda n, s: [[Message(0, 1, s)]],
    "broadcast": lambda n, s: [[Message(r, r + 1, s)] for r in range(n - 1)],
    "reduce": lambda n, s: [[Message(r, r - 1, s)] for r in range(n - 1, 0, -1)],
    "scatter": lambda n, s: [[Message(0, r, s / n)] for r in range(1, n)],
    "gather": lambda n, s: [[Message(r, 0, s / n)] for r in range(1, n)],
    "all_to_all": _all_to_all,
    "direct": _direct,
}
