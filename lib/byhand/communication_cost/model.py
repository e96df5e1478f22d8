"""What communication costs: seconds = alpha · rounds + beta · bytes. Pure.

A message of m bytes takes alpha + beta·m seconds: alpha to get going, beta for each byte. A
collective is some rounds of messages, one after another. In a round every rank sends through one
port and receives through one, both at once, and a port that has two messages in a round takes
twice as long. So a collective's cost is two numbers: its rounds, and the bytes that pass the
busiest port in them, added up. n ranks, S bytes (nccl-tests' size), H hosts.

    algorithm             rounds                 bytes
    ring, double_ring     2(n-1)                 2(n-1)/n · S
    recursive_doubling    log2 n                 log2 n · S
    halving_doubling      2 log2 n               2(n-1)/n · S
    tree                  2D                     2D · 2S         D = floor(log2 n)
    double_tree           2D                     2D · S
    direct                2                      2(n-1)/n · S
    hierarchical          2(n/H - 1) + 2(H-1)    2(n/H - 1)/(n/H) · S + 2(H-1)/n · S

recursive_doubling and halving_doubling need a power of two: other numbers of ranks send the tensor
of those too many to a partner first and back last, 2 rounds and 2S bytes more. In the trees the
lowest level may hold one rank only, whose two rounds are half as full. What links between
ranks add to this, and rounds that meet on one link, are in networks.
Simplified: a sum costs no time of its own (it hides in a fitted beta); no message slows another
except in a port; the messages of a round cost a rank one alpha, however many it sends, which
flatters direct; large tensors go whole, not in chunks that follow each other. The table holds for
S much larger than n.
Sources: Thakur et al. 2005; Chan et al. 2007; Sanders et al. 2009 (two trees); nccl-tests.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Rounds, one after another, and the bytes that pass the busiest port in them.

    >>> line = AlphaBeta(alpha=10e-6, beta=1 / 10e9)
    >>> line.of(Cost(rounds=1, num_bytes=1e9))
    0.10001
    """

    rounds: float
    num_bytes: float

    def __add__(self, other: Cost) -> Cost:
        """One after the other."""
        return Cost(self.rounds + other.rounds, self.num_bytes + other.num_bytes)


@dataclass(frozen=True)
class AlphaBeta:
    """A network in two numbers: `alpha` seconds per round, `beta` seconds per byte.

    >>> line = AlphaBeta(alpha=10e-6, beta=1 / 10e9)
    >>> [f"{line.seconds(name, 8, 1e6) * 1e6:.0f} µs" for name in ("ring", "tree")]
    ['315 µs', '1060 µs']
    """

    alpha: float
    beta: float

    def of(self, cost: Cost) -> float:
        """The seconds that `cost` takes."""
        return self.alpha * cost.rounds + self.beta * cost.num_bytes

    def seconds(
        self, algorithm: str, num_ranks: int, num_bytes: float, ranks_per_host: int = 1
    ) -> float:
        """The seconds of a collective or an all-reduce algorithm: arguments as for `cost`."""
        return self.of(cost(algorithm, num_ranks, num_bytes, ranks_per_host))


COLLECTIVES = (
    "send",
    "broadcast",
    "reduce",
    "scatter",
    "gather",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "all_reduce",
)
ALL_REDUCES = (
    "ring",
    "double_ring",
    "tree",
    "double_tree",
    "recursive_doubling",
    "halving_doubling",
    "hierarchical",
)
ALGORITHMS = (*COLLECTIVES, *ALL_REDUCES, "direct")


def cost(algorithm: str, num_ranks: int, num_bytes: float, ranks_per_host: int = 1) -> Cost:
    """Rounds and bytes of one of COLLECTIVES or of ALL_REDUCES. One rank alone costs nothing.

    "direct" is an all-reduce in which every rank sends to all others at once. The collectives are
    those of byhand.collectives: broadcast and reduce are chains, scatter and gather one message
    after another at the root, the others rings. ranks_per_host: for hierarchical.

    Raises:
        ValueError: an unknown algorithm, a count below 1, or ranks that do not fill the hosts.

    >>> cost("ring", num_ranks=4, num_bytes=1000)
    Cost(rounds=6, num_bytes=1500.0)
    >>> cost("tree", num_ranks=4, num_bytes=1000)
    Cost(rounds=4, num_bytes=6000)
    """
    check_counts(algorithm, num_ranks, num_bytes, ranks_per_host)
    n, s = num_ranks, num_bytes
    if n == 1:
        return Cost(0, 0)
    if algorithm == "send":
        return Cost(1, s)
    if algorithm in ("broadcast", "reduce"):
        return Cost(n - 1, (n - 1) * s)
    if algorithm in ("scatter", "gather", "all_gather", "reduce_scatter", "all_to_all"):
        return Cost(n - 1, (n - 1) * s / n)
    if algorithm in ("all_reduce", "ring", "double_ring"):
        return Cost(2 * (n - 1), 2 * (n - 1) * s / n)
    if algorithm == "direct":
        return Cost(2, 2 * (n - 1) * s / n)
    if algorithm in ("tree", "double_tree"):
        return _trees(n, s / 2 if algorithm == "double_tree" else s)
    if algorithm == "hierarchical":
        inside = cost("all_reduce", ranks_per_host, s)
        return inside + cost("all_reduce", n // ranks_per_host, s / ranks_per_host)
    return _powers_of_two(algorithm, n, s)


def _trees(n: int, s: float) -> Cost:
    """A reduce up the tree, then a broadcast down; a parent has two children on one port."""
    rounds = 2 * (n.bit_length() - 1)
    if n == 2:
        return Cost(rounds, rounds * s)
    lonely = n & (n - 1) == 0  # a power of two: the lowest level holds one rank
    return Cost(rounds, 2 * (rounds - lonely) * s)


def _powers_of_two(algorithm: str, n: int, s: float) -> Cost:
    steps = n.bit_length() - 1
    q = 1 << steps  # the largest power of two in n
    fold = Cost(2, 2 * s) if n > q else Cost(0, 0)
    if algorithm == "recursive_doubling":
        return Cost(steps, steps * s) + fold
    return Cost(2 * steps, 2 * (q - 1) * s / q) + fold


def literature_formula(num_ranks: int, num_bytes: float) -> Cost:
    """alpha·log2 n + beta·S·n, found in courses and blog posts as the cost of an all-reduce.

    No algorithm has it: it takes a tree's rounds and, for bytes, what a root that receives all
    tensors one after another would.

    >>> literature_formula(8, 1000), cost("ring", 8, 1000)
    (Cost(rounds=3, num_bytes=8000), Cost(rounds=14, num_bytes=1750.0))
    """
    steps = (num_ranks - 1).bit_length()
    return Cost(steps, num_bytes * num_ranks if num_ranks > 1 else 0)


def crossover(line: AlphaBeta, first: str, second: str, num_ranks: int) -> float | None:
    """The size, in bytes, at which two algorithms take equally long; None where one always wins.

    Below it the one with fewer rounds is faster, above it the one with fewer bytes.

    >>> line = AlphaBeta(alpha=10e-6, beta=1 / 10e9)
    >>> print(f"above {crossover(line, 'tree', 'ring', 16):,.0f} bytes the ring is faster")
    above 181,443 bytes the ring is faster
    """
    a, b = cost(first, num_ranks, 1), cost(second, num_ranks, 1)
    more_rounds, fewer_bytes = a.rounds - b.rounds, b.num_bytes - a.num_bytes
    if fewer_bytes * more_rounds <= 0 or line.beta == 0:
        return None
    return line.alpha * more_rounds / (line.beta * fewer_bytes)


def bus_factor(collective: str, num_ranks: int) -> float:
    """What nccl-tests multiplies algbw by, so that the result can be held against a link's rate.

    2(n-1)/n for an all-reduce by any algorithm; (n-1)/n for all_gather, reduce_scatter, all_to_all,
    scatter and gather; 1 for broadcast, reduce and send.

    >>> bus_factor("all_reduce", 4), bus_factor("all_gather", 4), bus_factor("broadcast", 4)
    (1.5, 0.75, 1.0)
    """
    check_counts(collective, num_ranks, 0, 1)
    if collective in ("send", "broadcast", "reduce"):
        return 1.0
    share = (num_ranks - 1) / num_ranks
    return 2 * share if collective in ("all_reduce", "direct", *ALL_REDUCES) else share


def bus_bandwidth(collective: str, num_ranks: int, num_bytes: float, seconds: float) -> float:
    """nccl-tests' busbw, in bytes per second: what the busiest link must have carried at least.

    >>> bus_bandwidth("all_reduce", num_ranks=4, num_bytes=1e9, seconds=0.1)
    15000000000.0
    """
    return num_bytes / seconds * bus_factor(collective, num_ranks)


def check_counts(algorithm: str, num_ranks: int, num_bytes: float, per_host: int) -> None:
    """Raises ValueError where `cost` must."""
    if algorithm not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise ValueError(f"unknown algorithm {algorithm!r}; known are {known}")
    for name, count in (("ranks", num_ranks), ("ranks per host", per_host)):
        if count < 1:
            raise ValueError(f"{name}: at least 1, not {count}")
    if num_bytes < 0:
        raise ValueError(f"a tensor has 0 bytes or more, not {num_bytes}")
    if num_ranks % per_host:
        raise ValueError(f"{num_ranks} ranks do not fill hosts of {per_host} ranks each")
