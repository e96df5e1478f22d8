"""Which submissions of a class share passages that the released notebook does not explain.

Compares what `fingerprints` keeps of each. Two things are taken out first: every passage of the
released notebook, and every passage that more than `ring` students have, which is what the task
itself asks for. What is left is a reason to read two submissions side by side, never a verdict.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from autograder.report.fingerprints import K, Token, hashes, tokens, winnow

RING = 10
MIN_SHARE = 0.25
MIN_TOKENS = 40  # about four lines: less is alike by chance
MAX_CHARACTERS = 200_000  # of one student, some 5,000 lines: a second of work at most


@dataclass(frozen=True)
class Program:
    """One student's code cells: (name, text), and the tokens of all, with where each stands."""

    student: str
    cells: list[tuple[str, str]]
    tokens: list[Token] = field(repr=False)
    kept: dict[int, int] = field(repr=False)

    @property
    def is_cut(self) -> bool:
        """Whether there is more than was compared."""
        return len(_joined(self.cells)) > MAX_CHARACTERS

    @property
    def lines(self) -> list[str]:
        """All lines, those of one cell after those of another."""
        return _joined(self.cells).split("\n")


@dataclass(frozen=True)
class Pair:
    """Two students. Shares are of each one's own tokens; `marked` are lines of shared passages."""

    left: Program
    right: Program
    shares: tuple[float, float]
    marked: tuple[frozenset[int], frozenset[int]]
    num_tokens: int

    @property
    def share(self) -> float:
        """The larger of the two shares: how much of the smaller work is in the other."""
        return max(self.shares)


def program(student: str, cells: Iterable[tuple[str, str]]) -> Program:
    """A student's code, ready to be compared: its first MAX_CHARACTERS."""
    cells = list(cells)
    found = tokens(_joined(cells)[:MAX_CHARACTERS])
    return Program(student, cells, found, winnow(hashes(found)))


def pairs(programs: list[Program], released: Iterable[str], ring: int = RING,
          min_share: float = MIN_SHARE) -> list[Pair]:  # fmt: skip
    """Pairs that share at least `min_share` of the smaller one's own code, the most alike first.

    `released` are the texts of the cells that students were given.
    """
    given = {value for text in released for value in hashes(tokens(text))}
    owners: dict[int, set[int]] = defaultdict(set)
    for number, one in enumerate(programs):
        for value in set(one.kept.values()) - given:
            owners[value].add(number)
    telling = {value: who for value, who in owners.items() if 2 <= len(who) <= max(ring, 2)}
    together = Counter(pair for who in telling.values() for pair in combinations(sorted(who), 2))
    owned = [_own_positions(one, given) for one in programs]
    made = [_pair(programs[a], programs[b], telling, owned[a], owned[b]) for a, b in together]
    chosen = [pair for pair in made if pair.share >= min_share and pair.num_tokens >= MIN_TOKENS]
    return sorted(chosen, key=lambda p: (-p.share, -p.num_tokens, p.left.student, p.right.student))


def _pair(left: Program, right: Program, telling: dict[int, set[int]], own_left: set[int],
          own_right: set[int]) -> Pair:  # fmt: skip
    shared = set(left.kept.values()) & set(right.kept.values()) & set(telling)
    covered = [_covered(one, shared) & own for one, own in ((left, own_left), (right, own_right))]
    shares = tuple(len(at) / max(len(own), 1)
                   for at, own in zip(covered, (own_left, own_right), strict=True))  # fmt: skip
    marked = tuple(frozenset(_lines(one, at))
                   for one, at in zip((left, right), covered, strict=True))  # fmt: skip
    return Pair(left, right, shares, marked, min(map(len, covered)))


def _own_positions(one: Program, given: set[int]) -> set[int]:
    """Positions of the tokens that no released passage explains."""
    values = hashes(one.tokens)
    theirs = {p for start, value in enumerate(values) if value in given
              for p in range(start, start + K)}  # fmt: skip
    return set(range(len(one.tokens))) - theirs


def _covered(one: Program, shared: set[int]) -> set[int]:
    """Token positions inside the shared passages; two that nearly touch are one passage."""
    starts = sorted(at for at, value in one.kept.items() if value in shared)
    inside = {p for start in starts for p in range(start, start + K)}
    for before, after in pairwise(starts):
        if after - before <= K + 2:
            inside |= set(range(before, after))
    return {position for position in inside if position < len(one.tokens)}


def _lines(one: Program, positions: set[int]) -> set[int]:
    return {one.tokens[position].line for position in positions}


def _joined(cells: list[tuple[str, str]]) -> str:
    return "\n".join(text for _, text in cells)
