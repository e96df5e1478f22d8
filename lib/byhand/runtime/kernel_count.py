"""What ranks really sent, by the kernel's count, held against what their logs say.

A rank's log is written by the rank, so a submission can write it too. The kernel's counters it
cannot: a question's ranks talk over the loopback device of a network namespace of their own, and
the fork server reads what crossed it. gloo sends 144 bytes around each message, and its algorithms
are fixed, so a log says to the byte what the counters must have grown by:

    send                         one message
    broadcast, scatter, gather   n-1 messages
    all-to-all                   n(n-1) messages
    all-gather                   2n(n-1): each rank's part in two halves, around the ring
    barrier                      n log2 n, rounded up, of no bytes
    monitored barrier            2(n-1), of 4 bytes
    all-reduce, reduce-scatter   a ring over 2n segments or more: 2(n-1) messages a segment
    reduce                       the first half of that ring, then the sums to the root
    a group                      24 bytes for each pair of its ranks, to connect

`namespaces.enter` keeps TCP from repeating what was only late. Where the kernel refuses that, or a
packet is lost, repeats are counted, and apart from them those that only ask for a connection again,
which hold nothing. A group takes no more than the connections
that were opened. Ranks find each other in a file of the fork server's, which grows by an address
for each member of each group and no more: it is no place to leave values in.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from byhand.runtime.errors import TamperedError
from byhand.runtime.trace import MONITORED, SETUP_OPS, Call

MESSAGE = 144  # gloo: two notices and a header of 48 bytes each
HEADERS = 52  # IP and TCP with time stamps, on every packet
PAIR = 24  # a connection's first bytes, and the longer headers of its first two packets
RESET = 12  # the headers of a reset may be as much shorter, and hide bytes of another packet
MAX_SEGMENT = 1 << 20
PACKET = 65_536  # the most that one packet, and so one repeat of TCP's own, can hold
ROUNDING = 1  # of shares of ranks
ADDRESS = 210  # a rank's record of a group in the file they meet in, and 8 for each member
LEAVING = 48  # a rank's record that it has left the world
LONG_NAME = 40  # of a group whose name is a hash
JOINING = 1 << 15  # a store of the program's own, to find the other ranks by, per rank
ARRIVAL_SECONDS = 0.3
ANSWER = 200  # what a question to a name server, and its refusal, hold
STRAY_DATAGRAMS = 16  # questions to a name server that is not there
_ELEMENT = {"int8": 1, "uint8": 1, "bool": 1, "float16": 2, "bfloat16": 2, "int16": 2,
            "float64": 8, "int64": 8, "complex64": 8, "complex128": 16}  # fmt: skip


@dataclass(frozen=True)
class Counters:
    """What a network namespace has carried so far, by the kernel."""

    num_bytes: int
    packets: int
    repeated: int
    asked_again: int  # of these, packets that ask for a connection or grant it
    opened: int  # connections
    resets: int
    datagrams: int  # sent by UDP; gloo sends none
    unanswered: int  # datagrams that reached no program
    left: int  # bytes in the file that the ranks meet in

    @classmethod
    def read(cls, store: int) -> Counters:
        """The counters of this process's network namespace, where only loopback is up.

        store: descriptor of the file that the ranks meet in.
        """
        loopback = _loopback(Path("/proc/self/net/dev").read_text())
        tables = (Path(f"/proc/self/net/{name}").read_text() for name in ("snmp", "netstat"))
        named = _named("".join(tables))
        pairs = (line.split() for line in Path("/proc/self/net/snmp6").read_text().splitlines())
        named |= {name: int(value) for name, value in pairs}
        sent = ("UdpOutDatagrams", "UdpLiteOutDatagrams", "Udp6OutDatagrams",
                "UdpLite6OutDatagrams")  # fmt: skip
        return cls(
            *loopback,
            named.get("TcpRetransSegs", 0),
            named.get("TcpExtTCPSynRetrans", 0),
            named.get("TcpPassiveOpens", 0),
            named.get("TcpOutRsts", 0),
            sum(named.get(name, 0) for name in sent),
            named.get("UdpNoPorts", 0) + named.get("Udp6NoPorts", 0),
            os.fstat(store).st_size,
        )

    def since(self, before: Counters) -> Counters:
        """What was added since `before`."""
        return Counters(*(mine - theirs for mine, theirs in zip(
            vars(self).values(), vars(before).values(), strict=True)))  # fmt: skip

    @property
    def payload(self) -> int:
        """Bytes carried inside TCP, repeats included."""
        return self.num_bytes - HEADERS * self.packets


def _loopback(text: str) -> tuple[int, int]:
    fields = re.search(r"^\s*lo:(.*)$", text, re.MULTILINE).group(1).split()
    return int(fields[0]), int(fields[1])


def _named(text: str) -> dict[str, int]:
    lines = text.splitlines()
    named = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        protocol, *columns = names.split()
        pairs = zip(columns, values.split()[1:], strict=True)
        named |= {protocol.rstrip(":") + column: int(value) for column, value in pairs}
    return named


class Audit:
    """Holds the logs of one launch against `read()`, what the kernel has counted for it so far.

    `joined`: the runtime set up the world, and not the function.
    """

    def __init__(self, read: Callable[[], Counters], world_size: int, joined: bool):
        self.read = read
        self.world_size = world_size
        self.joined = joined

    def hold(self, calls: list[Call]) -> None:
        """Compare, once what was sent last has arrived.

        Raises:
            TamperedError: the logs and the counters cannot both be right.
        """
        bounds = expected(calls, self.world_size, self.joined)
        until = time.monotonic() + ARRIVAL_SECONDS
        while words := complaint(self.read(), bounds):
            if time.monotonic() > until:
                raise TamperedError(words)
            time.sleep(0.01)


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
        total += Bounds(least, share.most, MESSAGE + call.payload, share.left, share.pairs)
    return total


def complaint(carried: Counters, bounds: Bounds) -> str | None:
    """Why the counters and the logs cannot both be right; None when they can."""
    opened = min(carried.opened, math.ceil(bounds.pairs))  # what logs alone tell of buys nothing
    heard = carried.datagrams - carried.unanswered
    if heard > 0 or carried.datagrams > STRAY_DATAGRAMS:
        return f"the ranks sent each other {carried.datagrams} datagrams past torch.distributed"
    if carried.left > bounds.left:
        return (
            f"the ranks left {carried.left:,} bytes in the file they meet in; their groups need"
            f" at most {round(bounds.left):,}"
        )
    least = bounds.least - RESET * opened - HEADERS * carried.datagrams - ROUNDING
    repeat = min(PACKET, bounds.message + MESSAGE)
    repeats = repeat * (carried.repeated - carried.asked_again) + PAIR * carried.asked_again
    most = bounds.most + PAIR * opened + repeats + ANSWER * carried.datagrams + ROUNDING
    hidden = RESET * max(0, carried.resets - 2 * opened)  # each end may reset a connection
    if least <= carried.payload <= most - hidden:
        return None
    return (
        f"the ranks' logs tell of calls that put {round(bounds.least):,} bytes on the wire; the"
        f" kernel counted {carried.payload:,}"
    )


def exactly(num_bytes: float) -> Bounds:
    """Neither less nor more."""
    return Bounds(num_bytes, num_bytes)


def _share(call: Call, joined: bool) -> Bounds:
    """One rank's share of what its call puts on the wire."""
    n, payload = len(call.group), call.payload
    if call.op == "send":
        return exactly(MESSAGE + payload)
    if call.op in SETUP_OPS:
        return _group(call, joined)
    if n < 2 or call.op == "recv":
        return exactly(0)
    if call.op == "all_to_all":
        return _all_to_all(call)
    element = _ELEMENT.get(call.dtype or "", 4)
    if call.op in ("all_reduce", "reduce_scatter"):
        return exactly(_ring(n, payload, element) / n)
    if call.op == "reduce":
        return _reduce(n, payload, element)
    if call.detail == MONITORED:
        return exactly(2 * (n - 1) * (MESSAGE + 4) / n)
    messages = {"all_gather": 2 * n * (n - 1), "barrier": n * math.ceil(math.log2(n))}
    carried = {"barrier": 0, "scatter": (n - 1) / n, "gather": (n - 1) / n}
    return exactly(
        (MESSAGE * messages.get(call.op, n - 1) + payload * carried.get(call.op, n - 1)) / n
    )


def _segments(n: int, payload: int, element: int) -> tuple[int, int, int]:
    """gloo's ring: bytes in a segment, how many are not empty, how many a rank owns."""
    largest = element * max(1, MAX_SEGMENT // element)
    count = n * math.ceil(max(math.ceil(payload / largest), 2 * n) / n)
    size = max(element, element * math.ceil(math.ceil(payload / count) / element))
    return size, math.ceil(payload / size), count // n


def _ring(n: int, payload: int, element: int) -> float:
    _, filled, _ = _segments(n, payload, element)
    return 2 * (n - 1) * (MESSAGE * filled + payload) if n > 1 else 0


def _reduce(n: int, payload: int, element: int) -> Bounds:
    """Half a ring, and then to the root, in one message from each rank, the segments it owns."""
    size, filled, own = _segments(n, payload, element)
    around = (n - 1) * (MESSAGE * filled + payload)
    least = max(0, payload - own * size) + MESSAGE * max(0, math.ceil(filled / own) - 1)
    return Bounds((around + least) / n, (around + MESSAGE * (n - 1) + payload) / n)


def _all_to_all(call: Call) -> Bounds:
    rows = sum(call.sends)
    here = call.group.index(call.rank) if call.rank in call.group else 0
    away = [count for rank, count in enumerate(call.sends) if rank != here]
    carried = call.payload * sum(away) / rows if rows else 0
    filled = sum(1 for count in away if count)
    return Bounds(MESSAGE * filled + carried, MESSAGE * len(away) + carried)


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
