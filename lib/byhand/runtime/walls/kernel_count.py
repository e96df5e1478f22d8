"""What ranks really sent, by the kernel's count, held against what their logs say.

A rank's log is written by the rank, so a submission can write it too. The kernel's counters it
cannot: a question's ranks talk over the loopback device of a network namespace of their own, and
the fork server reads what crossed it. A log says to the byte what the counters must have grown by
(see gloo_bytes.py).

`namespaces.enter` keeps TCP from repeating what was only late. Where the kernel refuses that, or a
packet is lost, repeats are counted, and apart from them those that only ask for a connection again,
which hold nothing. A group takes no more than the connections that were opened. The file in which
ranks find each other, the fork server's, grows by their addresses and no more: it is no place to
leave values in.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from byhand.runtime.errors import TamperedError
from byhand.runtime.ledger import Event as Call
from byhand.runtime.walls.gloo_bytes import MESSAGE, PAIR, Bounds, expected

HEADERS = 52  # IP and TCP with time stamps, on every packet
RESET = 12  # the headers of a reset may be as much shorter, and hide bytes of another packet
PACKET = 65_536  # the most that one packet, and so one repeat of TCP's own, can hold
ROUNDING = 1  # of shares of ranks
ARRIVAL_SECONDS = 0.3
ANSWER = 200  # what a question to a name server, and its refusal, hold
STRAY_DATAGRAMS = 16  # questions to a name server that is not there


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
