"""What each way to split a sequence sends and holds, and how long it takes. Pure.

n ranks; M: the bytes of the keys of the whole sequence, g query heads for each key head. Each rank
sends, in one attention layer:

    way         forward                       backward
    ring        2 (n-1)/n · M                 4 (n-1)/n · M           hidden behind the work
    scores      2 (n-1)/n · M                 4 (n-1)/n · M           RingQK, then RingAV
    gathered    2 (n-1)/n · M                 4 (n-1)/n · M
    ulysses     (2 + 2g) (n-1)/n² · M         (2 + 2g) (n-1)/n² · M

The largest thing held is the scores of a head, S positions, s = S/n:

    way         one device, ulysses   scores    ring, gathered
    numbers     S²                    s · S     s²                    by heads: H, H/n with ulysses

A fused kernel (flash attention) holds none of them; then keys and activations are what grows.
"""

from __future__ import annotations

from byhand.communication_cost.model import AlphaBeta, bus_factor
from byhand.context_parallel.places import CONTIGUOUS, ZIGZAG, pairs

WAYS = "ring", "gathered", "scores", "ulysses"


def sent_bytes(
    way: str, num_ranks: int, key_bytes: float, queries_per_key: int = 1
) -> tuple[float, float]:
    """Bytes that each rank sends, forward and backward: the table above."""
    check_way(way)
    if way == "ulysses":
        moved = (2 + 2 * queries_per_key) * key_bytes / num_ranks  # q, k, v there, y back
        both = bus_factor("all_to_all", num_ranks) * moved
        return both, both
    forward = bus_factor("all_gather", num_ranks) * 2 * key_bytes
    return forward, 2 * forward


def mixed_sent_bytes(inner: int, outer: int, key_bytes: float) -> tuple[float, float]:
    """The same for the mix: (by all-to-all within `inner`, round the ring), forward."""
    share = key_bytes / outer  # of the keys, that a group of `inner` ranks has
    between, _ = sent_bytes("ring", outer, key_bytes / inner)
    return sent_bytes("ulysses", inner, share)[0], between


def seconds(
    way: str,
    num_ranks: int,
    compute: float,
    key_bytes: float,
    line: AlphaBeta,
    layout: str = ZIGZAG,
    queries_per_key: int = 1,
) -> float:
    """Seconds of a causal forward, for a way of WAYS but scores.

    compute: of the whole attention on one device. line: of each rank's link. A ring's round takes
    as long as its message or the busiest rank's block, whichever takes longer.

    Raises:
        ValueError: there is no such way, or it is scores.
    """
    check_way(way)
    if way == "scores":
        timed = ", ".join(other for other in WAYS if other != way)
        raise ValueError(f"there are no seconds of scores, only its bytes; ask for {timed}")
    n, message = num_ranks, 2 * key_bytes / num_ranks
    if way == "ring":
        rounds = round_seconds(n, compute, layout)
        sends = [line.seconds("send", 2, message)] * (n - 1) + [0.0]
        return sum(max(pair) for pair in zip(rounds, sends, strict=True))
    if way == "gathered":
        return line.seconds("all_gather", n, 2 * key_bytes) + sum(round_seconds(n, compute, layout))
    g = queries_per_key
    there, back = (line.seconds("all_to_all", n, m * key_bytes / n) for m in (g + 2, g))
    return there + compute / n + back


def round_seconds(num_ranks: int, compute: float, layout: str = ZIGZAG) -> list[float]:
    """The seconds of each round of the ring on the rank that has most to do in the step."""
    n, length = num_ranks, 1 << 10
    whole = n * length * (n * length + 1) // 2

    def of(rank: int) -> list[float]:
        works = (pairs(rank, (rank - t) % n, length, layout, True) for t in range(n))
        return [compute * work / whole for work in works]

    return of(n - 1 if layout == CONTIGUOUS else 0)


def imbalance(num_ranks: int, layout: str) -> float:
    """The busiest rank's work over the average's, causal: (2n-1)/n contiguous, 1 zigzag."""
    return sum(round_seconds(num_ranks, 1.0, layout)) * num_ranks


def hides_from(
    flops_per_second: float, bytes_per_second: float, itemsize: int = 2, queries_per_key: int = 1
) -> float:
    """Positions a rank from which a causal ring's messages hide, whatever heads and batch.

    A round computes 2 s² d operations a query head, half of 4 s² d, and sends 2 s d numbers a key
    head: s = itemsize · rate of computing / (rate of the link · g).
    """
    return itemsize * flops_per_second / bytes_per_second / queries_per_key


def check_way(way: str) -> None:
    """Refuse a way that does not exist."""
    if way not in WAYS:
        raise ValueError(f"there is no way {way!r}; there are {', '.join(WAYS)}")
