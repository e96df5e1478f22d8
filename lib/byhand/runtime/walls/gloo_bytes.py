"""What calls put on the wire through gloo, to the byte: its algorithms are fixed.

gloo sends 144 bytes around each message:

    send                         one message
    broadcast, scatter, gather   n-1 messages
    all-to-all                   n(n-1) messages
    all-gather                   2n(n-1): each rank's part in two halves, around the ring
    barrier                      n log2 n, rounded up, of no bytes
    monitored barrier            2(n-1), of 4 bytes
    all-reduce, reduce-scatter   a ring over 2n segments or more: 2(n-1) messages a segment; of a
                                 list of tensors, a ring for each
    reduce                       the first half of such a ring, then the sums to the root
    a group                      24 bytes for each pair of its ranks, to connect

Segments of no bytes are not sent, nor is an all-gather of none. Ranks find each other in a file,
which grows by an address for each member of each group.

Source: gloo's allreduce.cc and reduce.cc; the rest from the kernel's counters, held to the byte by
tests/runtime/test_kernel_count.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from byhand.runtime.ledger import SETUP_OPS
from byhand.runtime.ledger import Event as Call
from byhand.runtime.trace.calls import MONITORED

MESSAGE = 144  # two notices and a header of 48 bytes each
PAIR = 24  # a connection's first bytes, and the longer headers of its first two packets
MAX_SEGMENT = 1 << 20
ADDRESS = 210  # a rank's record of a group in the file they meet in, and 8 for each member
LEAVING = 48  # a rank's record that it has left the world
LONG_NAME = 40  # of a group whose name is a hash
JOINING = 1 << 15  # a store of the program's own, to find the other ranks by, per rank
_ELEMENT = {"int8": 1, "uint8": 1, "bool": 1, "float16": 2, "bfloat16": 2, "int16": 2,
            "float64": 8, "int64": 8, "complex64": 8, "complex128": 16}  # fmt: skip


@dataclass(frozen=True)
class Bounds:
    """Least and most bytes that some calls put on the wire."""

    least: float
    most: float
    message: float = 0  # the largest single one
    left: float = 0  # most bytes in the file that the ranks meet in
    pairs: float = 0  # connections; `most` is without what it takes to open them

    def __add__(self, other: Bounds) -> Bounds:
        message, left = max(self.message, other.message), self.left + other.left
        least, most = self.least + other.least, self.most + other.most
        return Bounds(least, most, message, left, self.pairs + other.pairs)


def expected(calls: Iterable[Call], world_size: int, joined: bool) -> Bounds:
    """What these calls of all ranks put on the wire; `joined`: the runtime set up the world.

    A call that no partner answered may have sent all, some or nothing.
    """
    total = Bounds(0, 0)
    if joined:  # and sent a first message of four numbers on every connection
        pairs, carried = world_size * (world_size - 1) / 2, _ring(world_size, 16, 4)
        left = _addresses(world_size) + LEAVING * world_size
        total = Bounds(PAIR * pairs + carried, carried, left=left, pairs=pairs)
    for call in calls:
        share = _share(call, joined)
        least = share.least if call.matched else 0
        total += Bounds(least, share.most, MESSAGE + call.payload_bytes, share.left, share.pairs)
    return total


def exactly(num_bytes: float) -> Bounds:
    """Neither less nor more."""
    return Bounds(num_bytes, num_bytes)


def _share(call: Call, joined: bool) -> Bounds:
    """One rank's share of what its call puts on the wire."""
    n, payload = len(call.group), call.payload_bytes
    if call.op == "send":
        return exactly(MESSAGE + payload)
    if call.op in SETUP_OPS:
        return _group(call, joined)
    if n < 2 or call.op == "recv":
        return exactly(0)
    if call.op == "all_to_all":
        return exactly(_all_to_all(call, n))
    element = _ELEMENT.get(call.dtype or "", 4)
    if call.op in ("all_reduce", "reduce_scatter"):
        rings = 1
        return exactly(rings * _ring(n, payload / rings, element) / n)
    if call.op == "reduce":
        return exactly(_reduce(call, n, element))
    if call.op == "all_gather" and payload == 0:
        return exactly(0)
    if call.detail == MONITORED:
        return exactly(2 * (n - 1) * (MESSAGE + 4) / n)
    messages = {"all_gather": 2 * n * (n - 1), "barrier": n * math.ceil(math.log2(n))}
    carried = {"barrier": 0, "scatter": (n - 1) / n, "gather": (n - 1) / n}
    return exactly(
        (MESSAGE * messages.get(call.op, n - 1) + payload * carried.get(call.op, n - 1)) / n
    )


def _ring(n: int, payload: float, element: int) -> float:
    """gloo's all-reduce: every segment that is not empty goes around, and around again."""
    if n < 2:
        return 0
    count = n * math.ceil(max(math.ceil(payload / _largest(element)), 2 * n) / n)
    size = max(element, element * math.ceil(math.ceil(payload / count) / element))
    return 2 * (n - 1) * (MESSAGE * math.ceil(payload / size) + payload)


def _reduce(call: Call, n: int, element: int) -> int:
    """What one rank sends in gloo's reduce: all segments but the last two of its own, then its own
    to the root in one message."""
    payload = call.payload_bytes
    size = min(math.ceil(payload / (2 * n)), _largest(element))
    size = max(element, element * math.ceil(size / element))
    own = math.ceil(max(math.ceil(payload / size), 2 * n) / n)
    end = (call.group.index(call.rank) + 1) * own
    kept = [_piece(payload, (end - back) * size, size) for back in (1, 2)]
    sent = payload + MESSAGE * math.ceil(payload / size) - sum(_message(part) for part in kept)
    if call.rank == call.root:
        return sent
    return sent + _message(_piece(payload, (end - own) * size, own * size))


def _largest(element: int) -> int:
    """The most bytes of a segment, in whole elements."""
    return element * max(1, MAX_SEGMENT // element)


def _piece(payload: int, offset: int, num_bytes: int) -> int:
    """How much of these bytes lies within the payload."""
    return min(num_bytes, max(0, payload - offset))


def _message(num_bytes: int) -> int:
    """What a message costs on the wire; one of no bytes is not sent."""
    return MESSAGE + num_bytes if num_bytes else 0


def _all_to_all(call: Call, n: int) -> float:
    """A message to each of the others, be it empty; a log may say anything of the rows."""
    rows, here = sum(call.sends), call.group.index(call.rank)
    away = rows - sum(call.sends[here : here + 1])
    carried = call.payload_bytes * away / rows if rows else 0
    return MESSAGE * (n - 1) + min(call.payload_bytes, max(0, carried))


def _group(call: Call, joined: bool) -> Bounds:
    """Connections of a new group; who has not joined yet may do so by a store of its own."""
    n = len(call.group)
    if call.op == "init_process_group":
        store = 0 if joined else JOINING
        return Bounds(0, store, left=_addresses(n) / n + LEAVING, pairs=(n - 1) / 2)
    members = min(n, len(re.findall(r"\d+", call.detail)))
    left = _addresses(members) + LONG_NAME * members
    return Bounds(0, 0, left=left / n, pairs=members * (members - 1) / 2 / n)


def _addresses(members: int) -> int:
    """The most bytes that the members of a group leave in the file they meet in."""
    return members * (ADDRESS + 8 * members)
