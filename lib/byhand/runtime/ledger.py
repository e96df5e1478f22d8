"""The ledger: every communication call of a run, by rank, with what it carried and sent.

`payload_bytes` is S as nccl-tests counts it: the tensor (all-reduce, broadcast, reduce, send,
recv), the whole output (all-gather), the whole input (reduce-scatter, all-to-all), all chunks
together (scatter, gather). `sent_bytes` is what this rank sends under the standard algorithm,
for n ranks:

    all-reduce                              2 S (n-1)/n      ring
    all-gather, reduce-scatter                S (n-1)/n
    all-to-all                                S less the split that it keeps: S (n-1)/n if all
                                              are equal
    broadcast                                 S              a chain from the root; its last rank 0
    reduce                                    S              a chain to the root; the root 0
    scatter                                   S (n-1)/n      the root; the others 0
    gather                                    S / n          all but the root
    send                                      S              recv and barrier 0

A ring and a chain send to the next rank of the group, the last one to the first; an all-to-all to
every rank what it gets. It is a count from the call, not a measurement of the network: a sparse
tensor counts as if it were dense, though a backend sends its values and their places alone.
Source: NVIDIA nccl-tests, doc/PERFORMANCE.md, for the factors.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path

from byhand.runtime.errors import table
from byhand.runtime.trace.sources import line_name
from byhand.words import counted

OPS = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "scatter",
    "gather",
    "all_to_all",
    "send",
    "recv",
    "barrier",
)
SETUP_OPS = ("init_process_group", "new_group")  # collective too, but they carry no tensors
HEADER = ("rank", "call", "peer", "group", "tensor", "sent bytes", "start ms", "end ms", "line")
MAX_ROWS = 100


@dataclass(kw_only=True, eq=False)
class Call:
    """What a rank says of a communication call: these fields, in this order, are its record.

    All ranks are global ones.
    """

    op: str
    group: tuple[int, ...]
    group_name: str = ""
    file: str = ""
    line: int = 0
    payload_bytes: int = 0
    shape: tuple[int, ...] = ()
    dtype: str = ""
    reduce_op: str = ""
    root: int | None = None
    peer: int | None = None
    tag: int = 0
    sends: tuple[int, ...] = ()  # all-to-all: elements to each rank
    receives: tuple[int, ...] = ()
    detail: str = ""  # what else all ranks must agree on: of set-up calls, of a monitored barrier
    made: str = ""  # new_group: torch's name for what it makes
    others: int | None = None  # new_group by its members alone: how many others this rank is in
    declared: int | None = None  # init_process_group: the world size it was given


@dataclass(kw_only=True, eq=False)
class Event(Call):
    """One communication call of one rank; times in seconds since the first rank began.

    >>> run = launch(lambda rank, world_size: dist.all_reduce(torch.ones(1000)), 4)
    >>> event = run.ledger.select(rank=0)[0]
    >>> event.op, event.group, event.payload_bytes, event.sent_bytes
    ('all_reduce', (0, 1, 2, 3), 4000, 6000)
    """

    rank: int
    start: float
    wait_start: float | None = None  # when the rank began to wait for it, if it ever did
    wait_end: float | None = None
    done: float | None = None  # when it completed, where the backend tells
    overlapped: bool = False  # the rank computed between the call and the wait for it
    matched: bool = False  # every rank it needs has made its call too
    ready: float | None = None  # when the last of them did,
    awaited: int | None = None  # and which that was

    @property
    def source(self) -> str:
        """The line that made the call, as a reader of the notebook knows it."""
        return line_name(self.file, self.line)

    @property
    def end(self) -> float:
        """When the call was over, as far as the rank could tell."""
        return max(self.done or self.wait_end or self.start, self.start)

    @property
    def waited(self) -> float:
        """Seconds this rank stood still for the call."""
        if self.wait_start is None:
            return 0.0
        return max(0.0, (self.wait_end or self.end) - self.wait_start)

    @property
    def waited_for_others(self) -> float:
        """Of those, the seconds until the last rank of the call had made it, too."""
        if self.wait_start is None or self.ready is None:
            return 0.0
        return min(self.waited, max(0.0, self.ready - self.wait_start))

    @property
    def sent_bytes(self) -> int:
        """Bytes that this rank sends, under the table above."""
        return sent_bytes(self.op, self.payload_bytes, self.group, self.rank, self.root, self.sends)

    def bytes_to_other_hosts(self, ranks_per_host: int) -> float:
        """Those of `sent_bytes` that leave the host, where host k has ranks k·n to (k+1)·n - 1."""
        shares = receivers(self)
        here = self.rank // ranks_per_host
        leaving = sum(share for to, share in shares.items() if to // ranks_per_host != here)
        return self.sent_bytes * leaving / (sum(shares.values()) or 1)

    def count_from(self, zero: float) -> None:
        """Have this event's times begin at `zero`."""
        for name in ("start", "wait_start", "wait_end", "done", "ready"):
            if (moment := getattr(self, name)) is not None:
                setattr(self, name, moment - zero)


def sent_bytes(
    op: str,
    payload: int,
    group: tuple[int, ...],
    rank: int,
    root: int | None = None,
    sends: tuple[int, ...] = (),
) -> int:
    """Bytes that global rank `rank` sends in `op` on `group` under the table above.

    sends: of an uneven all-to-all, the elements that it sends to each rank, its own included.
    """
    n = len(group)
    if n == 1 or op in ("recv", "barrier"):
        return 0
    if op == "send":
        return payload
    if op == "all_reduce":
        return round(2 * payload * (n - 1) / n)
    if op == "all_to_all" and len(sends) == n and any(sends):
        return round(payload * (1 - sends[group.index(rank)] / sum(sends)))
    if op in ("all_gather", "reduce_scatter", "all_to_all"):
        return round(payload * (n - 1) / n)
    if op == "broadcast":
        last = group[(group.index(root) - 1) % n] if root in group else None
        return 0 if rank == last else payload
    if op == "reduce":
        return 0 if rank == root else payload
    if op == "scatter":
        return round(payload * (n - 1) / n) if rank == root else 0
    if op == "gather":
        return 0 if rank == root else round(payload / n)
    raise ValueError(f"unknown op {op!r}; known are {', '.join(OPS)}")


def receivers(event: Event) -> dict[int, float]:
    """Who gets what this rank sends in a call, as shares: see the table above."""
    group, only = event.group, {"send": event.peer, "gather": event.root}.get(event.op)
    if only is not None:
        return {only: 1.0}
    if event.op in ("all_to_all", "scatter"):
        sends = event.sends if len(event.sends) == len(group) else (1,) * len(group)
        return {to: n for to, n in zip(group, sends, strict=True) if to != event.rank}
    return {group[(group.index(event.rank) + 1) % len(group)]: 1.0}


class Ledger:
    """All events of a run, by start. Prints as a table.

    >>> ledger = launch(lambda rank, world_size: dist.all_reduce(torch.ones(1000)), 4).ledger
    >>> ledger.count("all_reduce"), ledger.count(rank=0), ledger.sent_bytes("all_reduce", rank=0)
    (4, 1, 6000)
    """

    def __init__(self, events: list[Event]):
        self.events = sorted(events, key=lambda event: event.start)

    def select(self, op: str | None = None, rank: int | None = None) -> list[Event]:
        """The events of one op, one rank, or both; all when neither is given."""
        if op is not None and op not in OPS:
            raise ValueError(f"unknown op {op!r}; known are {', '.join(OPS)}")
        return [
            event
            for event in self.events
            if (op is None or event.op == op) and (rank is None or event.rank == rank)
        ]

    def count(self, op: str | None = None, rank: int | None = None) -> int:
        """How many calls: over all ranks, or those of one `rank`; all ops, or one `op`."""
        return len(self.select(op, rank))

    def sent_bytes(self, op: str | None = None, rank: int | None = None) -> int:
        """Bytes sent under the standard algorithms: over all ranks, or by one."""
        return sum(event.sent_bytes for event in self.select(op, rank))

    def bytes_between_hosts(self, ranks_per_host: int) -> float:
        """Of those, the ones that leave a host, where each has that many ranks."""
        return sum(event.bytes_to_other_hosts(ranks_per_host) for event in self.events)

    def rows(self) -> list[tuple[str, ...]]:
        """One row of text per event: what `str(ledger)` prints."""
        return [
            (
                str(e.rank),
                e.op,
                "" if e.peer is None else str(e.peer),
                str(list(e.group)),
                f"{list(e.shape)} {e.dtype}".strip() if e.op != "barrier" else "",
                f"{e.sent_bytes:,}",
                f"{1e3 * e.start:.2f}",
                f"{1e3 * e.end:.2f}",
                e.source,
            )
            for e in self.events
        ]

    def __str__(self) -> str:
        return table(HEADER, self.rows()) if self.events else "no call on a group"

    def _repr_html_(self) -> str:
        """The first rows as a table, for a notebook."""
        head = "".join(f"<th scope='col'>{html.escape(cell)}</th>" for cell in HEADER)
        rows = self.rows()[:MAX_ROWS]
        cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
        body = "".join(f"<tr>{row}</tr>" for row in (head, *cells))
        more = len(self.events) - MAX_ROWS
        note = f"<p>and {counted(more, 'call')} more</p>" if more > 0 else ""
        return f"<p>{html.escape(repr(self)[1:-1])}</p><table>{body}</table>{note}"

    def __repr__(self) -> str:
        return f"<Ledger: {counted(len(self.events), 'call')}, {self.sent_bytes():,} bytes sent>"

    def to_perfetto(self, path: str | Path) -> Path:
        """Write the events as a trace that ui.perfetto.dev and chrome://tracing open.

        One row per rank, one slice per call, in microseconds (the Trace Event Format).
        """
        traced = [
            {
                "name": e.op,
                "cat": "communication",
                "ph": "X",
                "pid": 0,
                "tid": e.rank,
                "ts": 1e6 * e.start,
                "dur": 1e6 * (e.end - e.start),
                "args": {
                    "sent_bytes": e.sent_bytes,
                    "payload_bytes": e.payload_bytes,
                    "group": list(e.group),
                    "line": e.source,
                },
            }
            for e in self.events
        ]
        names = [
            {
                "name": "thread_name",
                "ph": "M",
                "pid": 0,
                "tid": rank,
                "args": {"name": f"rank {rank}"},
            }
            for rank in sorted({e.rank for e in self.events})
        ]
        path = Path(path)
        path.write_text(json.dumps({"traceEvents": names + traced, "displayTimeUnit": "ms"}))
        return path
