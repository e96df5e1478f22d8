"""Every collective and all-reduce algorithm as rounds of messages: who sends how much to whom.

A round is a list of messages that travel at once; the next begins when all have arrived. Pure
integers and bytes: the same rounds are priced on any network (`communication_networks`), added up
by link, or drawn. P ranks, m bytes, c chunks. The algorithms are those of communication_cost.cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from byhand.communication_cost import check_counts


class Message(NamedTuple):
    """`num_bytes` from rank `sender` to rank `receiver`."""

    sender: int
    receiver: int
    num_bytes: float


Rounds = list[list[Message]]


def rounds(
    algorithm: str,
    num_ranks: int,
    num_bytes: float,
    num_chunks: int = 1,
    ranks_per_host: int = 1,
) -> Rounds:
    """The messages of one call, round by round; none for one rank. Roots are rank 0.

    num_chunks: for chains and trees. ranks_per_host: for hierarchical, hosts filled in rank order.

    Raises:
        ValueError: as communication_cost.cost.
    """
    check_counts(algorithm, num_ranks, num_bytes, num_chunks, ranks_per_host)
    p, m = num_ranks, num_bytes
    if p == 1:
        return []
    if algorithm in ("broadcast", "reduce"):
        return _chain(p, m, num_chunks, algorithm == "reduce")
    if algorithm == "tree":
        return _tree(p, m, num_chunks)
    if algorithm == "double_tree":
        mirrored = [
            [Message(p - 1 - a, p - 1 - b, n) for a, b, n in messages]
            for messages in _tree(p, m / 2, num_chunks)
        ]
        return _at_once(_tree(p, m / 2, num_chunks), mirrored)
    if algorithm == "hierarchical":
        return _hierarchical(p, m, ranks_per_host)
    return _PLAIN[algorithm](p, m)


def _around(p: int, m: float, step: int = 1) -> Rounds:
    """P-1 rounds in which every rank sends m/P to the rank `step` after it."""
    return [[Message(r, (r + step) % p, m / p) for r in range(p)] for _ in range(p - 1)]


def _double_ring(p: int, m: float) -> Rounds:
    return _at_once(2 * _around(p, m / 2), 2 * _around(p, m / 2, -1))


def _all_to_all(p: int, m: float) -> Rounds:
    return [[Message(r, (r + k) % p, m / p) for r in range(p)] for k in range(1, p)]


def _direct(p: int, m: float) -> Rounds:
    """Every rank to all others at once: a reduce-scatter, then an all-gather."""
    return [[message for messages in _all_to_all(p, m) for message in messages]] * 2


def _recursive_doubling(p: int, m: float) -> Rounds:
    q = _largest_power_of_two(p)
    distances = [1 << k for k in range(q.bit_length() - 1)]
    return _folded(p, m, [[Message(r, r ^ d, m) for r in range(q)] for d in distances])


def _halving_doubling(p: int, m: float) -> Rounds:
    """Half of the tensor with the farthest, a quarter with the next; then the way back."""
    q = _largest_power_of_two(p)
    distances = [q >> k for k in range(1, q.bit_length())]
    halving = [[Message(r, r ^ d, m * d / q) for r in range(q)] for d in distances]
    return _folded(p, m, halving + halving[::-1])


def _folded(p: int, m: float, inner: Rounds) -> Rounds:
    """Ranks beyond the power of two give their tensor to one within it, and get the sum back."""
    q = _largest_power_of_two(p)
    if p == q:
        return inner
    there = [Message(r, r - q, m) for r in range(q, p)]
    return [there, *inner, [Message(b, a, n) for a, b, n in there]]


def _chain(p: int, m: float, c: int, towards_root: bool) -> Rounds:
    """Rank r passes chunk j on in round r + j: 0 → 1 → 2 ..., or all of it backwards."""
    found = []
    for number in range(p + c - 2):
        senders = [r for r in range(p - 1) if 0 <= number - r < c]
        found.append([Message(r, r + 1, m / c) for r in senders])
    return _backwards(found) if towards_root else found


def _tree(p: int, m: float, c: int) -> Rounds:
    """Reduce up and broadcast down the binary tree in which rank r's parent is (r-1)//2."""
    depth = p.bit_length() - 1
    down = []
    for number in range(depth + c - 1):
        levels = [(r, (r + 1).bit_length() - 1) for r in range(1, p)]
        receivers = [r for r, level in levels if 0 <= number - (level - 1) < c]
        down.append([Message((r - 1) // 2, r, m / c) for r in receivers])
    return _backwards(down) + down


def _hierarchical(p: int, m: float, n: int) -> Rounds:
    """Reduce-scatter inside each host, n all-reduces across hosts at once, all-gather inside."""
    hosts = p // n
    inside = [
        [Message(h * n + a, h * n + b, size) for h in range(hosts) for a, b, size in messages]
        for messages in _around(n, m)
    ]
    across = [
        [Message(a * n + i, b * n + i, size) for i in range(n) for a, b, size in messages]
        for messages in 2 * _around(hosts, m / n)
    ]
    return inside + across + inside


def _at_once(first: Rounds, second: Rounds) -> Rounds:
    return [[*a, *b] for a, b in zip(first, second, strict=True)]


def _backwards(forwards: Rounds) -> Rounds:
    return [[Message(b, a, n) for a, b, n in messages] for messages in forwards[::-1]]


def _largest_power_of_two(p: int) -> int:
    return 1 << (p.bit_length() - 1)


_PLAIN: dict[str, Callable[[int, float], Rounds]] = {
    "send": lambda p, m: [[Message(0, 1, m)]],
    "scatter": lambda p, m: [[Message(0, r, m / p)] for r in range(1, p)],
    "gather": lambda p, m: [[Message(r, 0, m / p)] for r in range(1, p)],
    "all_gather": _around,
    "reduce_scatter": _around,
    "all_to_all": _all_to_all,
    "all_reduce": lambda p, m: 2 * _around(p, m),
    "ring": lambda p, m: 2 * _around(p, m),
    "double_ring": _double_ring,
    "recursive_doubling": _recursive_doubling,
    "halving_doubling": _halving_doubling,
    "direct": _direct,
}
