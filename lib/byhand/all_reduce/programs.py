"""What one rank does in an all-reduce plan: its sends and receives, in blocks. Pure.

A block is a part of the tensor that goes through the plan's rounds by itself, so that while one
block is added another is on the wire. A rank takes its receives in a fixed order; each send leaves
as soon as the receives it depends on have been taken. So nothing waits without need, every rank
adds in the same order each time, and no two ranks wait for each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from byhand.all_reduce.plans import Plan, Transfer, cut


class Send(NamedTuple):
    """Elements start..stop-1 to `peer`: of the input tensor as it came in, or of the result."""

    peer: int
    start: int
    stop: int
    of_input: bool
    tag: int


class Receive(NamedTuple):
    """Elements start..stop-1 from `peer`, replacing the result's or to be added to one's own.

    One's own are in the input if `of_input`, else in the result. Before adding, the sends `after`,
    by peer and tag, must be through: they read what is written. Afterwards the sends `then` leave.
    """

    peer: int
    start: int
    stop: int
    reduces: bool
    of_input: bool
    tag: int
    after: tuple[tuple[int, int], ...]
    then: tuple[Send, ...]


@dataclass(frozen=True)
class Program:
    """One rank's part of a plan. Peers are ranks within the group.

    A tag names one message among those from its sender to its receiver.
    """

    first: tuple[Send, ...]
    receives: tuple[Receive, ...]
    widest: int  # elements of the largest receive that reduces


class _Part(NamedTuple):
    """One block of one transfer that this rank sends or receives."""

    round: int
    block: int
    transfer: Transfer
    tag: int
    start: int
    stop: int


Spans = list[list[tuple[int, int]]]


def block_spans(num_elements: int, num_pieces: int, num_blocks: int) -> Spans:
    """spans[block][piece]: blocks cut first, pieces within each, so pieces of a block adjoin."""
    blocks = cut(num_elements, num_blocks)
    spans = []
    for block in range(num_blocks):
        bounds = cut(blocks[block + 1] - blocks[block], num_pieces)
        bounds = [blocks[block] + bound for bound in bounds]
        spans.append(list(pairwise(bounds)))
    return spans


def piece_spans(bounds: list[int], num_blocks: int) -> Spans:
    """spans[block][piece]: the pieces are given; each is cut into blocks."""
    pieces = []
    for start, stop in pairwise(bounds):
        inner = [start + bound for bound in cut(stop - start, num_blocks)]
        pieces.append(list(pairwise(inner)))
    return [list(block) for block in zip(*pieces, strict=True)]


def program(plan: Plan, rank: int, spans: Spans, held: tuple[int, ...] = ()) -> Program:
    """What `rank` does. `held`: pieces that are in its result from the beginning."""
    parts = list(_parts(plan, rank, spans))
    order = sorted((part for part in parts if part.transfer.receiver == rank), key=_order(plan))
    writes = defaultdict(list)  # by piece and block: the receives that write it
    for number, part in enumerate(order):
        for place in _places(part):
            writes[place].append((number, part.round))
    ready = defaultdict(list)  # by receive, -1 for none: the sends it sets free
    reads = defaultdict(list)  # by piece and block: the sends that read it from the result
    for part in (part for part in parts if part.transfer.sender == rank):
        places = _places(part)
        last = max((n for p in places for n, at in writes[p] if at < part.round), default=-1)
        of_input = last < 0 and not any(piece in held for piece, _ in places)
        ready[last].append(Send(part.transfer.receiver, *part[-2:], of_input, part.tag))
        for place in () if of_input else places:
            reads[place].append(((part.transfer.receiver, part.tag), part.round))
    receives = []
    for number, part in enumerate(order):
        of_input = not any(n < number for place in _places(part) for n, _ in writes[place])
        receives.append(_receive(part, of_input, reads, ready[number]))
    widest = max((r.stop - r.start for r in receives if r.reduces), default=0)
    return Program(tuple(ready[-1]), tuple(receives), widest)


def _receive(part: _Part, of_input: bool, reads: dict, then: list[Send]) -> Receive:
    earlier = {key for p in _places(part) for key, at in reads[p] if at <= part.round}
    after = tuple(sorted(earlier)) if part.transfer.reduces else ()
    sender, reduces = part.transfer.sender, part.transfer.reduces
    return Receive(sender, *part[-2:], reduces, of_input, part.tag, after, tuple(then))


def _parts(plan: Plan, rank: int, spans: Spans) -> Iterator[_Part]:
    """The rank's transfers in blocks, empty ones left out; a tag is one message of two ranks."""
    tags = Counter()
    for number, transfers in enumerate(plan.rounds):
        for transfer in transfers:
            if rank not in (transfer.sender, transfer.receiver):
                continue
            pair = transfer.sender, transfer.receiver
            for block, pieces in enumerate(spans):
                start, stop = pieces[transfer.start][0], pieces[transfer.stop - 1][1]
                if start < stop:
                    yield _Part(number, block, transfer, tags[pair] + block, start, stop)
            tags[pair] += len(spans)


def _order(plan: Plan):
    if plan.in_waves:
        return lambda part: (part.round + part.block, part.round, part.transfer.sender)
    return lambda part: (part.round, part.block, part.transfer.sender)


def _places(part: _Part) -> list[tuple[int, int]]:
    return [(piece, part.block) for piece in range(part.transfer.start, part.transfer.stop)]
