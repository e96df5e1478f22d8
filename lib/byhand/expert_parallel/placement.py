"""Which rank holds which expert, what an uneven load costs, and what evens it. Pure.

Integers in, numbers out. A *placement* is a list of experts for each rank; an expert on several
ranks is *replicated*, and its copies share its rows equally. Ranks wait for the one with the most
rows, so the price of a placement is its *imbalance*: the most rows of a rank, over the mean.

    in_order      experts as they are numbered: what a framework does by itself
    even          as many experts on each rank, the loads as even as a greedy choice makes them
    replicated    the same, with spare places for copies of the hottest experts
    relabelled    an equally good placement that moves as few experts as it can

E experts, n ranks.
Sources: DeepSeek's EPLB, https://github.com/deepseek-ai/EPLB; Graham 1969 (the greedy choice).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

Placement = Sequence[Sequence[int]]  # for each rank, the experts that it holds


def in_order(num_experts: int, num_ranks: int) -> list[list[int]]:
    """Experts dealt out in order; the first ranks may hold one more."""
    each, more = divmod(num_experts, num_ranks)
    edges = [rank * each + min(rank, more) for rank in range(num_ranks + 1)]
    return [list(range(*both)) for both in itertools.pairwise(edges)]


def even(loads: Sequence[float], num_ranks: int) -> list[list[int]]:
    """Each expert on one rank, as many on each (give or take one): the heaviest expert first.

    Each goes to the rank with the least load among those with a free place.
    """
    return replicated(loads, num_ranks, num_slots=len(loads))


def replicated(loads: Sequence[float], num_ranks: int, num_slots: int) -> list[list[int]]:
    """As `even`, with num_slots places in all: spare ones hold copies of the hottest experts.

    A spare place goes to the expert with the most rows a copy, and the copies with the most rows
    are placed first. No rank holds an expert twice; where
    the greedy choice leaves no other rank, a place stays empty.

    Raises:
        ValueError: fewer places than experts, or more than a copy on every rank.
    """
    if not len(loads) <= num_slots <= len(loads) * num_ranks:
        raise ValueError(
            f"{num_slots} places cannot hold {len(loads)} experts on {num_ranks} ranks: there must "
            f"be {len(loads)} to {len(loads) * num_ranks}"
        )
    copies = [1] * len(loads)
    for _ in range(num_slots - len(loads)):
        spare = [e for e in range(len(loads)) if copies[e] < num_ranks]
        copies[max(spare, key=lambda e: loads[e] / copies[e])] += 1
    placement: list[list[int]] = [[] for _ in range(num_ranks)]
    places = [len(part) for part in in_order(num_slots, num_ranks)]
    filled = [0.0] * num_ranks
    for expert in sorted(range(len(loads)), key=lambda e: -loads[e] / copies[e]):
        for _ in range(copies[expert]):
            free = [r for r in range(num_ranks) if len(placement[r]) < places[r]]
            free = [r for r in free if expert not in placement[r]]
            if free:
                rank = min(free, key=lambda r: filled[r])
                placement[rank].append(expert)
                filled[rank] += loads[expert] / copies[expert]
    return [sorted(experts) for experts in placement]


def rank_loads(placement: Placement, loads: Sequence[float]) -> list[float]:
    """The rows of each rank, when copies share an expert's rows equally."""
    holders = [sum(expert in experts for experts in placement) for expert in range(len(loads))]
    return [sum(loads[e] / holders[e] for e in experts) for experts in placement]


def imbalance(placement: Placement, loads: Sequence[float]) -> float:
    """The most rows of a rank over the mean: how many times longer experts take than if even."""
    by_rank = rank_loads(placement, loads)
    return max(by_rank) * len(by_rank) / sum(by_rank) if sum(by_rank) else 1.0


def moves(old: Placement, new: Placement) -> list[tuple[int, int, int]]:
    """(expert, from, to) for each rank that gets an expert which it did not hold.

    The holders of an expert take turns in sending it.
    """
    found = []
    for to, experts in enumerate(new):
        for expert in experts:
            if expert not in old[to]:
                holders = [rank for rank, held in enumerate(old) if expert in held]
                busy = sum(move[0] == expert for move in found)
                found.append((expert, holders[busy % len(holders)], to))
    return found


def relabelled(old: Placement, new: Placement) -> list[list[int]]:
    """The same shares as `new`, each on the rank where much of it lies already.

    Greedy: of all ranks and shares that are free, the two with the most experts in common go
    together.
    """
    ranks, shares = set(range(len(old))), [list(experts) for experts in new]
    placed: list[list[int]] = [[] for _ in old]
    while ranks:
        pairs = itertools.product(sorted(ranks), shares)
        rank, share = max(pairs, key=lambda pair: len(set(old[pair[0]]) & set(pair[1])))
        placed[rank] = share
        ranks.remove(rank)
        shares.remove(share)
    return placed


def pays_after(seconds_to_move: float, before: float, after: float) -> float:
    """After how many steps a move has paid: steps take `before` seconds, then `after`."""
    return seconds_to_move / (before - after) if after < before else float("inf")
