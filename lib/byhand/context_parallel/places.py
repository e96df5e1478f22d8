"""Which rank holds which positions of a sequence, and which keys its queries may see. Pure.

    contiguous   rank r holds chunk r of n
    zigzag       rank r holds chunks r and 2n-1-r of 2n: one early, one late

Under a causal mask a query sees the keys up to its own position. Early queries see few keys, so
with contiguous shares the last rank has nearly twice the average work. One early and one late chunk
make every rank's work equal, and in every round of the ring.

Shapes: S positions, s = S/n of them on each of n ranks.
Source: the zigzag of zhuzilin/ring-flash-attention, and of torch's context_parallel.
"""

from __future__ import annotations

from typing import NamedTuple

CONTIGUOUS, ZIGZAG = "contiguous", "zigzag"
LAYOUTS = CONTIGUOUS, ZIGZAG
ALL = slice(None)


class Seen(NamedTuple):
    """The one rectangle of scores that a rank computes with another's keys.

    queries, keys: which of the two shares' positions. masked: positions are compared one by one,
    as on one device; else every query here sees every key.
    """

    queries: slice
    keys: slice
    masked: bool


def chunks(rank: int, num_ranks: int, layout: str) -> tuple[int, ...]:
    """The numbers of the chunks that this rank holds, ascending.

    Raises:
        ValueError: a layout that does not exist.
    """
    check_layout(layout)
    return (rank, 2 * num_ranks - 1 - rank) if layout == ZIGZAG else (rank,)


def positions(num_positions: int, rank: int, num_ranks: int, layout: str) -> list[int]:
    """The positions of the sequence that this rank holds, in its share's order.

    Raises:
        ValueError: chunks of equal size cannot be made.
    """
    length = chunk_length(num_positions, num_ranks, layout)
    starts = (chunk * length for chunk in chunks(rank, num_ranks, layout))
    return [position for start in starts for position in range(start, start + length)]


def chunk_length(num_positions: int, num_ranks: int, layout: str) -> int:
    """Positions of a chunk.

    Raises:
        ValueError: they do not divide: ranks exchange shares of one shape.
    """
    each = len(chunks(0, num_ranks, layout))
    if num_positions % (each * num_ranks) or not num_positions:
        raise ValueError(
            f"{num_positions} positions cannot be shared out {layout} over {num_ranks} ranks: they "
            f"must be a multiple of {each} · {num_ranks}; pad the sequences"
        )
    return num_positions // each // num_ranks


def seen(rank: int, owner: int, length: int, layout: str, causal: bool) -> Seen | None:
    """What of the owner's keys the rank's queries see, both shares of `length` positions.

    None: nothing. Contiguous: all of an earlier rank's keys, none of a later one's. Zigzag: an
    earlier rank's *early* chunk is seen by all queries; all keys of a later rank by the *late*
    queries: half of the square in both cases.
    """
    check_layout(layout)
    if layout == ZIGZAG and length % 2:
        raise ValueError(f"a zigzag share of {length} positions has no equal chunks")
    half = length // 2
    if not causal or owner == rank:
        return Seen(ALL, ALL, causal)
    if owner < rank:
        return Seen(ALL, slice(half) if layout == ZIGZAG else ALL, False)
    return Seen(slice(half, None), ALL, False) if layout == ZIGZAG else None


def pairs(rank: int, owner: int, length: int, layout: str, causal: bool) -> int:
    """How many (query, key) pairs that are: the work of one round."""
    part = seen(rank, owner, length, layout, causal)
    if part is None:
        return 0
    if part.masked:
        return length * (length + 1) // 2
    queries, keys = (len(range(length)[where]) for where in (part.queries, part.keys))
    return queries * keys


def check_layout(layout: str) -> None:
    """Refuse a layout that does not exist."""
    if layout not in LAYOUTS:
        raise ValueError(f'there is no layout {layout!r}: choose "zigzag" or "contiguous"')
