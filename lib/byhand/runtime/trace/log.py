"""A rank's log, as the supervisor reads it: what the rank called, and what it is waiting in.

The rank appends one JSON array per line to a memory file that the supervisor also holds, so the
log outlives the rank and costs it no wait. Nothing in it is trusted: every field is checked.

    ["begin", t]                    the rank entered the function
    ["call", index, {...}, t]       it made communication call number `index` (fields of Call)
    ["wait", index, t, computed]    it stands still for that call; computed: tensor operations ran
                                    since the call
    ["aside", index, t, computed]   a thread beside the function's own stands still for it
    ["awake", index, t]             it goes on
    ["done", index, t]              the call completed (only where the backend tells)
    ["end", t, peak_bytes]          it left the function
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from byhand.runtime.errors import TamperedError
from byhand.runtime.ledger import OPS, Event, sent_bytes

SETUP_OPS = ("init_process_group", "new_group")  # collective too, but they carry no tensors
MONITORED = "a monitored barrier"


@dataclass
class Call:
    """One communication call; `peer`, `root` and `group` are global ranks."""

    index: int
    rank: int
    op: str
    group_name: str
    group: tuple[int, ...]
    source: tuple[str, int]
    start: float
    payload: int = 0
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    reduce_op: str | None = None
    root: int | None = None
    peer: int | None = None
    tag: int = 0
    sends: tuple[int, ...] = ()  # all-to-all: rows to each rank
    receives: tuple[int, ...] = ()
    listed: bool = False  # reduce-scatter: a list of tensors, which gloo reduces one by one
    detail: str = ""  # what else all ranks must agree on: of set-up calls, of a monitored barrier
    declared: int | None = None  # init_process_group: the world size it was given
    matched: bool = False  # every rank it needs has made its call too
    wait_from: float | None = None
    wait_until: float | None = None
    done: float | None = None
    overlapped: bool = False

    @property
    def must_agree(self) -> tuple[object, ...]:
        """What must be equal on all ranks of a collective."""
        return (self.op, self.shape, self.dtype, self.reduce_op, self.root, self.detail)

    @property
    def end(self) -> float:
        """When the call was over, as far as the rank could tell."""
        return self.done or self.wait_until or self.start

    def event(self, zero: float, source: str) -> Event:
        """This call as a ledger event, times from `zero`."""
        waited, wait_start = 0.0, None
        if self.wait_from is not None:
            waited = max(0.0, (self.wait_until or self.end) - self.wait_from)
            wait_start = self.wait_from - zero
        return Event(
            self.rank,
            self.op,
            self.group,
            self.payload,
            sent_bytes(self.op, self.payload, self.group, self.rank, self.root),
            self.start - zero,
            max(self.end, self.start) - zero,
            source,
            self.peer,
            self.root,
            self.reduce_op,
            self.shape or (),
            self.dtype or "",
            waited,
            self.overlapped,
            wait_start,
        )


_FIELDS: dict[str, tuple[type, ...]] = {
    "op": (str,),
    "group_name": (str,),
    "group": (list,),
    "source": (list,),
    "payload": (int,),
    "shape": (list, type(None)),
    "dtype": (str, type(None)),
    "reduce_op": (str, type(None)),
    "root": (int, type(None)),
    "peer": (int, type(None)),
    "tag": (int,),
    "sends": (list,),
    "receives": (list,),
    "listed": (bool,),
    "detail": (str,),
    "declared": (int,),
}


MAX_INT = 1 << 62
MAX_DIMENSIONS = 64
MAX_ITEMS = 4096  # of a list in a record: ranks, or rows to each


def plain_text(value: object, limit: int = 20_000) -> str:
    """Text that every file and every page can hold: no half characters, and not too long."""
    return str(value)[:limit].encode("utf-8", "replace").decode()


@dataclass
class RankLog:
    """Everything one rank's log has said so far."""

    rank: int
    calls: list[Call] = field(default_factory=list)
    waiting: Call | None = None
    began: float | None = None
    ended: float | None = None
    peak_bytes: int = 0
    clock_ahead: float = 0.0  # seconds by which the rank's clock is ahead of the reader's
    _rest: bytes = b""

    def outstanding(self) -> Call | None:
        """The first call that the rank made, has not waited for, and whose partners are missing."""
        return next((c for c in self.calls if not c.matched and c.wait_until is None), None)

    def feed(self, data: bytes) -> list[Call]:
        """Take in newly written bytes; return the calls that are new.

        Raises:
            TamperedError: a line that the recorder does not write.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        before = len(self.calls)
        for line in lines:
            try:
                self._take(json.loads(line))
            except (
                ValueError,
                TypeError,
                IndexError,
                KeyError,
                AttributeError,
                RecursionError,
                OverflowError,
            ) as error:
                message = f"rank {self.rank} wrote a log line that is not the recorder's: {error}"
                raise TamperedError(message) from None
        return self.calls[before:]

    def _take(self, record: list[Any]) -> None:
        kind = record[0]
        if kind == "begin" and self.began is None:
            self.began = self._moment(record[1])
        elif kind == "end" and self.ended is None:
            self.ended, self.peak_bytes = self._moment(record[1]), _counted(record[2])
        elif kind == "call":
            self._take_call(record)
        elif kind in ("wait", "aside"):
            call = self._call(record[1])
            call.wait_from, call.overlapped = self._moment(record[2]), bool(record[3])
            self.waiting = call if kind == "wait" else self.waiting
        elif kind == "awake":
            call = self._call(record[1])
            call.wait_until = self._moment(record[2])
            self.waiting = None if self.waiting is call else self.waiting
        elif kind == "done":
            self._call(record[1]).done = self._moment(record[2])
        else:
            raise ValueError(f"record {kind!r}, unknown or for the second time")

    def _moment(self, there: Any) -> float:
        return float(there) - self.clock_ahead

    def _call(self, index: int) -> Call:
        if type(index) is not int or not 0 <= index < len(self.calls):
            raise ValueError(f"no call {index!r}")
        return self.calls[index]

    def _take_call(self, record: list[Any]) -> None:
        _, index, fields, start = record
        if index != len(self.calls):
            raise ValueError(f"call {index!r} after {len(self.calls)} calls")
        for name, value in fields.items():
            if type(value) not in _FIELDS[name]:
                raise ValueError(f"{name} is a {type(value).__name__}")
            fields[name] = _checked(name, value)
        if fields["op"] not in (*OPS, *SETUP_OPS):
            raise ValueError("its operation is none that torch has")
        if self.rank not in fields["group"] or len(set(fields["group"])) < len(fields["group"]):
            raise ValueError("its group is not one that it is in")
        moment = self._moment(start)
        self.calls.append(Call(index=index, rank=self.rank, start=moment, **fields))


def _counted(value: Any) -> int:
    if type(value) is not int or not 0 <= value < MAX_INT:
        raise ValueError("a number of bytes that no rank holds")
    return value


def _checked(name: str, value: Any) -> Any:
    """A field as the reader may use it: of a size that costs it nothing.

    Raises:
        ValueError: no call has such a field.
    """
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, list):
        kinds = (str, int) if name == "source" else (int,)
        most = MAX_DIMENSIONS if name == "shape" else MAX_ITEMS
        if len(value) > most or not all(type(item) in kinds for item in value):
            raise ValueError(f"{name} is a list that no call has")
        return tuple(_checked(name, item) for item in value)
    least = 0 if name in ("payload", "shape") else -MAX_INT
    if type(value) is int and not least <= value < MAX_INT:
        raise ValueError(f"{name} is out of range")
    return value
