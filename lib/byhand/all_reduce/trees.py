"""All-reduce in a logarithmic number of rounds: trees, doubling, halving and doubling. Pure.

What an algorithm is, and the table of rounds and bytes, are in byhand.all_reduce.algorithms.
Sources: Thakur, Rabenseifner & Gropp 2005 (recursive doubling, halving-doubling); Sanders, Speck &
Träff 2009, Two-tree algorithms for full bandwidth broadcast, reduction and scan.
"""

from __future__ import annotations

from byhand.all_reduce.algorithms import Algorithm, Round, Rounds, Transfer, together


def tree(num_ranks: int) -> Algorithm:
    """Sums climb the tree in which rank r's children are 2r+1 and 2r+2; the total descends."""
    parents = [(rank - 1) // 2 for rank in range(num_ranks)]
    return Algorithm(num_ranks, 1, tuple(_up_and_down(parents, 0)))


def double_tree(num_ranks: int) -> Algorithm:
    """Half the tensor up and down each of two trees."""
    first, second = two_trees(num_ranks)
    rounds = together([_up_and_down(first, 0), _up_and_down(second, 1)])
    return Algorithm(num_ranks, 2, rounds)


def two_trees(num_ranks: int) -> tuple[list[int], list[int]]:
    """By rank, its parents in two trees, -1 for a root: it has children in one of them at most.

    The first tree numbers its nodes in order, so even ranks are leaves; the second is the first
    seen in a mirror, or moved on by one when n is odd, so that odd ranks are.
    """
    first = _in_order_parents(num_ranks)
    if num_ranks % 2 == 0:
        other = [num_ranks - 1 - rank for rank in range(num_ranks)]
    else:
        other = [(rank + 1) % num_ranks for rank in range(num_ranks)]
    second = [-1] * num_ranks
    for rank, parent in enumerate(first):
        second[other[rank]] = other[parent] if parent >= 0 else -1
    return first, second


def recursive_doubling(num_ranks: int) -> Algorithm:
    """Everything to the rank at distance 1, then 2, 4, …: few rounds, many bytes."""
    power = 1 << (num_ranks.bit_length() - 1)
    rounds = []
    distance = 1
    while distance < power:
        rounds.append(tuple(Transfer(r, r ^ distance, 0, 1, True) for r in range(power)))
        distance *= 2
    return Algorithm(num_ranks, 1, _with_the_rest(rounds, num_ranks, power, 1))


def halving_doubling(num_ranks: int, near_first: bool = False) -> Algorithm:
    """A reduce-scatter that halves what it sends each round, then an all-gather that doubles it.

    The largest messages go to the farthest partner, or with `near_first` to the nearest.
    """
    power = 1 << (num_ranks.bit_length() - 1)
    distances = [power >> k for k in range(1, power.bit_length())]
    kept, length = [0] * power, power  # where the part that a rank sums up starts
    halving, doubling = [], []
    for distance in reversed(distances) if near_first else distances:
        length //= 2
        kept = [start + bool(rank & distance) * length for rank, start in enumerate(kept)]
        ways = [(rank, rank ^ distance) for rank in range(power)]
        halving.append(tuple(Transfer(r, s, kept[s], kept[s] + length, True) for r, s in ways))
        doubling.append(tuple(Transfer(r, s, kept[r], kept[r] + length, False) for r, s in ways))
    rounds = halving + doubling[::-1]
    return Algorithm(num_ranks, power, _with_the_rest(rounds, num_ranks, power, power))


def _up_and_down(parents: list[int], piece: int) -> Rounds:
    """Deepest ranks first to their parents, and back; the root's parent is negative."""
    depth = [_depth(parents, rank) for rank in range(len(parents))]
    up = []
    for level in range(max(depth), 0, -1):
        senders = [rank for rank in range(len(parents)) if depth[rank] == level]
        up.append(tuple(Transfer(r, parents[r], piece, piece + 1, True) for r in senders))
    down = [tuple(Transfer(t.receiver, t.sender, piece, piece + 1, False) for t in r) for r in up]
    return up + down[::-1]


def _depth(parents: list[int], rank: int) -> int:
    depth = 0
    while parents[rank] >= 0:
        rank, depth = parents[rank], depth + 1
    return depth


def _in_order_parents(num_ranks: int) -> list[int]:
    """A binary tree whose nodes, read from left to right, are 0, 1, …; even ranks are leaves."""
    parents = [-1] * num_ranks
    ranges = [(0, num_ranks, -1)]
    while ranges:
        first, end, parent = ranges.pop()
        if first < end:
            middle = first + (1 << ((end - first).bit_length() - 1)) - 1
            parents[middle] = parent
            ranges += [(first, middle, middle), (middle + 1, end, middle)]
    return parents


def _with_the_rest(
    rounds: Rounds, num_ranks: int, power: int, num_pieces: int
) -> tuple[Round, ...]:
    """Ranks from `power` on hand all they have to rank - power first, and get the total last."""
    rest = range(power, num_ranks)
    first = tuple(Transfer(r, r - power, 0, num_pieces, True) for r in rest)
    last = tuple(Transfer(r - power, r, 0, num_pieces, False) for r in rest)
    return (first, *rounds, last) if rest else tuple(rounds)
