"""A rank's log: a file in memory that the rank maps and writes, and that its supervisor reads.

Writing costs the rank no system call, and what it wrote outlives it. The first eight bytes say how
many have been written as records, and the next sixteen which call is being made, if any: it counts
where the rank is killed in it, perhaps by its backend. Nothing in the file is trusted: every length
and every field is checked. After these come records:

    length, kind, index, moment, value, and for a FORM the fields of ledger.Call, as JSON

BEGIN   the rank entered the function
FORM    calls that name form `index` look like this
CALL    it made its next communication call, of form `index`; value WAIT or ASIDE: and waits for it
WAIT    it stands still for call number `index`; value 1: it computed since the call
ASIDE   a thread stands still for it up to a time-out of its own, or beside another: one may go on
AWAKE   it goes on
DONE    the call completed (only where the backend tells, and the rank did not wait at once)
END     it left the function; value: the most bytes it held, or NOT_FOLLOWED
"""

from __future__ import annotations

import itertools
import json
import math
import mmap
import os
import resource
import struct
import threading
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from byhand.runtime.errors import TamperedError
from byhand.runtime.ledger import OPS, SETUP_OPS, Call, Event
from byhand.runtime.system import give_back, new_file
from byhand.words import plain_text

CAPACITY = 64 << 20  # bytes of records; memory is taken as it is written
LONG_CAPACITY = CAPACITY << 10  # where it is given back as it is read
_LENGTH, _RECORDS = 8, 24  # bytes that say how many, and where records begin
BEGIN, FORM, CALL, WAIT, ASIDE, AWAKE, DONE, END = range(8)
NOT_FOLLOWED = -1
MAX_RECORD = 1 << 18
MOST_FORMS = 4096  # kept at a time: calls whose sizes differ each time are of ever new forms
MAX_TEXT = 20_000
MAX_DIMENSIONS = 64
MAX_ITEMS = 4096  # of a list in a record: ranks, or elements to each
_HEAD = struct.Struct("<IBIdq")
_MAKING = struct.Struct("<IId")  # form plus one (0: no call is being made), value, moment
_SCHEMA = {field.name: str(field.type) for field in fields(Call)}


class Record(NamedTuple):
    """One record; `body` is a form's fields, packed."""

    kind: int
    index: int  # type: ignore[assignment] # nobody looks for a value in a record
    moment: float
    value: int
    body: bytes


def packed_call(call: Call) -> bytes:
    """The fields of a call as bytes."""
    values = {name: getattr(call, name) for name in _SCHEMA}
    texts = {n: plain_text(text, MAX_TEXT) for n, text in values.items() if type(text) is str}
    return json.dumps(values | texts).encode()


def records(data: bytes) -> tuple[list[Record], bytes]:
    """The whole records that `data` begins with, and what follows them.

    Raises:
        ValueError: no record looks so.
    """
    whole, at = [], 0
    while at + _HEAD.size <= len(data):
        length, kind, index, moment, value = _HEAD.unpack_from(data, at)
        if not _HEAD.size <= length <= MAX_RECORD or not math.isfinite(moment):
            raise ValueError(f"a record of {length} bytes at {moment}")
        if at + length > len(data):
            break
        whole.append(Record(kind, index, moment, value, data[at + _HEAD.size : at + length]))
        at += length
    return whole, data[at:]


def unpacked_call(body: bytes) -> dict[str, Any]:
    """The fields of a call, each of its type and of a size that costs the reader nothing.

    Raises:
        ValueError: no call has such fields.
    """
    values = json.loads(body)
    if type(values) is not dict or values.keys() != _SCHEMA.keys():
        raise ValueError("its fields are not a call's")
    for name, kind in _SCHEMA.items():
        if kind == "tuple[int, ...]" and type(values[name]) is list:
            values[name] = tuple(values[name])
        if not _fits(name, kind, values[name]):
            raise ValueError(f"no call's {name} is this")
    return values


def _fits(name: str, kind: str, value: Any) -> bool:
    """Whether a call may have this value in its field."""
    if kind == "str":
        return type(value) is str and value == plain_text(value, MAX_TEXT)
    if kind == "tuple[int, ...]":
        most = MAX_DIMENSIONS if name == "shape" else MAX_ITEMS
        return type(value) is tuple and len(value) <= most and all(map(_is_count, value))
    if name == "payload_bytes":
        return _is_count(value)
    return (value is None and "None" in kind) or (type(value) is int and abs(value) < 1 << 63)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def long_capacity() -> int:
    """LONG_CAPACITY, or less where this process's address space is limited (ulimit -v).

    A rank, whose limit is the same, maps its log whole: that gets a quarter, and all else the rest.
    """
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if space == resource.RLIM_INFINITY:
        return LONG_CAPACITY
    return min(LONG_CAPACITY, max(CAPACITY, space // 4))


def log_file(name: str, capacity: int = CAPACITY) -> int:
    """The descriptor of a new, empty log."""
    fd = new_file(name)
    os.ftruncate(fd, _RECORDS + capacity)
    return fd


def logged(fd: int) -> int:
    """How many bytes of records a log says it has; more than CAPACITY when it was too short."""
    return int.from_bytes(os.pread(fd, _LENGTH, 0), "little")


def read_log(fd: int, at: int, most: int) -> bytes:
    """Records' bytes from `at` on, `most` of them."""
    return os.pread(fd, max(0, min(most, logged(fd) - at)), _RECORDS + at)


def shorten_log(fd: int, at: int) -> None:
    """Give back the memory of the records before `at`, which nobody will read again."""
    give_back(fd, mmap.PAGESIZE, (_RECORDS + at) // mmap.PAGESIZE * mmap.PAGESIZE)


def append_log(fd: int, data: bytes) -> None:
    """Add records that were read from another log."""
    at = logged(fd)
    os.pwrite(fd, data, _RECORDS + at)
    os.pwrite(fd, (at + len(data)).to_bytes(_LENGTH, "little"), 0)


def add_call_of_the_killed(fd: int) -> None:
    """Have the log of a rank that was killed say that it made the call that it was making."""
    making, room = os.pread(fd, _MAKING.size, _LENGTH), os.fstat(fd).st_size - _RECORDS
    if len(making) < _MAKING.size or logged(fd) + _HEAD.size > room:
        return  # the rank has cut its log short, or filled it
    form, value, moment = _MAKING.unpack(making)
    if form:
        append_log(fd, _HEAD.pack(_HEAD.size, CALL, form - 1, moment, value))
        os.pwrite(fd, bytes(_MAKING.size), _LENGTH)


class LogWriter:
    """The rank's end. Threads may write at once. `fd` -1: a log that nobody reads."""

    def __init__(self, fd: int):
        self._size = os.fstat(fd).st_size if fd >= 0 else mmap.PAGESIZE
        self._bytes = mmap.mmap(fd, self._size) if fd >= 0 else bytearray(self._size)
        self._written = memoryview(self._bytes)[:_LENGTH].cast("Q")
        self._end = _RECORDS
        self._calls = 0
        self._forms: dict[bytes, int] = {}
        self._lock = threading.RLock()

    def write(
        self, kind: int, index: int, moment: float, value: int = 0, body: bytes = b""
    ) -> None:
        """Append a record."""
        length = _HEAD.size + len(body)
        with self._lock:
            begin, self._end = self._end, self._end + length
            if self._end <= self._size:
                _HEAD.pack_into(self._bytes, begin, length, kind, index, moment, value)
                if body:
                    self._bytes[begin + _HEAD.size : self._end] = body
            self._written[0] = self._end - _RECORDS

    def call(self, body: bytes, moment: float, waits: int = 0) -> int:
        """Append a call, packed; its number. `waits`: WAIT or ASIDE, if it blocks."""
        with self._lock:
            form = self._form(body, moment)
            self.not_making()
            self.write(CALL, form, moment, waits)
            self._calls += 1
            return self._calls - 1

    def making(self, body: bytes, moment: float, waits: int = 0) -> None:
        """Say which call is about to be made, as `call` does. Until that, or `not_making`, it
        counts only where this process is killed.
        """
        with self._lock:
            form = self._form(body, moment)
            _MAKING.pack_into(self._bytes, _LENGTH, form + 1, waits, moment)

    def not_making(self) -> None:
        """Say that no call is being made."""
        _MAKING.pack_into(self._bytes, _LENGTH, 0, 0, 0.0)

    def _form(self, body: bytes, moment: float) -> int:
        """The number of a form, which is written when it is met first."""
        form = self._forms.get(body)
        if form is None:
            if len(self._forms) >= MOST_FORMS:
                self._forms.clear()
            form = self._forms[body] = len(self._forms)
            self.write(FORM, form, moment, 0, body)
        return form


@dataclass
class RankLog:
    """Everything one rank's log has said so far."""

    rank: int
    calls: dict[int, Event] = field(default_factory=dict)  # by number, those that are kept
    waiting: Event | None = None
    began: float | None = None
    ended: float | None = None
    peak_bytes: int | None = None
    clock_ahead: float = 0.0  # seconds by which the rank's clock is ahead of the reader's
    _made: int = 0  # calls, also those that are not kept
    _forms: list[dict[str, Any]] = field(default_factory=list)
    _rest: bytes = b""

    def outstanding(self) -> Event | None:
        """The first call that the rank made, has not waited for, and whose partners are missing.

        None where a thread stands still for one aside: it, or another, may go on.
        """
        left = [c for c in self.calls.values() if not c.matched and c.wait_end is None]
        stands_aside = any(c.wait_start is not None and c is not self.waiting for c in left)
        return left[0] if left and not stands_aside else None

    def forget(self, most: int) -> list[Event]:
        """Take away the oldest calls whose partners have come, where there are twice `most`."""
        if len(self.calls) < 2 * most:
            return []
        oldest = itertools.islice(self.calls.items(), len(self.calls) - most)
        over = [number for number, c in oldest if c.matched and c is not self.waiting]
        return [self.calls.pop(number) for number in over]

    def feed(self, data: bytes) -> list[Event]:
        """Take in newly written bytes; return the calls that are new.

        Raises:
            TamperedError: they are not what a recorder writes.
        """
        before = self._made
        try:
            whole, self._rest = records(self._rest + data)
            for record in whole:
                self._take(record)
        except (ValueError, RecursionError) as error:
            message = f"rank {self.rank} wrote a log that is not the recorder's: {error}"
            raise TamperedError(message) from None
        return [self.calls[number] for number in range(before, self._made)]

    def _take(self, record: Record) -> None:
        kind, moment = record.kind, record.moment - self.clock_ahead
        if kind == BEGIN and self.began is None:
            self.began = moment
        elif kind == END and self.ended is None and record.value >= NOT_FOLLOWED:
            self.ended = moment
            self.peak_bytes = None if record.value == NOT_FOLLOWED else record.value
        elif kind == FORM and record.index in (0, len(self._forms)):
            if record.index == 0:  # the rank has begun anew
                self._forms.clear()
            self._forms.append(self._form(record.body))
        elif kind == CALL and record.index < len(self._forms):
            call = Event(**self._forms[record.index], rank=self.rank, start=moment)
            self.calls[self._made] = call
            self._made += 1
            if record.value in (WAIT, ASIDE):
                self._take_moment(record.value, call, moment, False)
        elif kind in (WAIT, ASIDE, AWAKE, DONE) and record.index < self._made:
            if record.index in self.calls:  # else it was let go
                self._take_moment(kind, self.calls[record.index], moment, bool(record.value))
        else:
            raise ValueError(f"record {kind} of number {record.index}")

    def _take_moment(self, kind: int, call: Event, moment: float, computed: bool) -> None:
        if kind in (WAIT, ASIDE):
            call.wait_start, call.overlapped = moment, computed
            self.waiting = call if kind == WAIT else self.waiting
        elif kind == AWAKE:
            call.wait_end = moment
            self.waiting = None if self.waiting is call else self.waiting
        else:
            call.done = moment

    def _form(self, body: bytes) -> dict[str, Any]:
        """What all calls of a form have in common."""
        values = unpacked_call(body)
        if values["op"] not in (*OPS, *SETUP_OPS):
            raise ValueError("its operation is none that torch has")
        if self.rank not in values["group"] or len(set(values["group"])) < len(values["group"]):
            raise ValueError("its group is not one that it is in")
        return values
