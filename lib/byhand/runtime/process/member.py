"""The launching process's ends of one rank: its socket, and its four files."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from byhand.runtime.errors import Failure, TamperedError
from byhand.runtime.ledger import Event
from byhand.runtime.messages import send_message
from byhand.runtime.system import new_file
from byhand.runtime.trace import sources
from byhand.runtime.trace.log import CAPACITY, RankLog, log_file, logged, read_log, shorten_log
from byhand.words import plain_text

MAX_HEADER = 1 << 20
MOST_WAKES = 1 << 16  # of a student's notebook, that answers often; a rank wakes once or twice
MOST_WAITED = 3
LOOK_BYTES = 1 << 18
MAX_FRAMES, MAX_FRAME = 200, 5000  # of a stack: faulthandler writes 100
MAX_STACK = 1 << 20  # the end of a rank's file of stacks that is looked at
_FRAME = re.compile(r'  File "(.+)", line (\d{1,9}) in ')
# A stack is written in many pieces: its last line is a process's or a thread's outermost frame, or
# says that there are more.
_OUTERMOST = re.compile(rb"( in (_run_module_as_main|_bootstrap)|\n  \.\.\.)\n\Z")
_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U(000[0-9a-f]{5}))")  # by faulthandler


def read_all(fd: int, limit: int, at: int = 0) -> bytes:
    """The bytes of a memory file from `at` to `limit`."""
    parts = []
    while at < limit and (part := os.pread(fd, min(1 << 20, limit - at), at)):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def as_list(value: Any) -> list[Any]:
    """What a rank sent where a list should be; empty where it sent another thing."""
    return value if isinstance(value, list) else []


class Deadline:
    """`seconds` of a team's time: the wall's, less `waited()`, seconds in which it could have run
    and other programs had the processor; up to MOST_WAITED times as many."""

    def __init__(self, seconds: float, waited: Callable[[], float] = lambda: 0.0):
        self.seconds = seconds
        self.waited = waited
        self.lost = 0.0
        self.began = time.monotonic()

    @property
    def left(self) -> float:
        """How many are left, as far as is known."""
        return max(0.0, self.began + self.seconds + self.lost - time.monotonic())

    @property
    def spent(self) -> float:
        """How many are over, as far as is known."""
        return time.monotonic() - self.began - self.lost

    def is_over(self) -> bool:
        """Whether none is left; asks what was lost only when it matters."""
        if not self.left:
            self.ask()
        return not self.left

    def ask(self) -> None:
        """Know what was lost until now."""
        self.lost = min(self.waited(), MOST_WAITED * self.seconds)


@dataclass
class Member:
    """One rank of a team, and what has come from it so far."""

    rank: int
    control: socket.socket
    log_fd: int
    output_fd: int
    stack_fd: int
    result_fd: int
    log: RankLog
    has_input: bool = False  # somebody may answer it
    has_its_call: bool = True  # False once it is known to have ended before it took its call
    header: dict[str, Any] | None = None  # of its result, when that is written
    has_left: bool = False  # it ended, or a program's exit functions have run
    log_bytes: int = 0  # read so far
    _value_at: int = 0  # where in its result the value begins
    _wakes: int = 0

    @classmethod
    def create(cls, rank: int, log_bytes: int = CAPACITY) -> tuple[Member, list[Any]]:
        """A member, and the descriptors that its rank is to be given (the socket to be closed).

        Raises:
            OSError: there are no more files; none is left open.
        """
        ours, theirs = socket.socketpair()
        fds: list[int] = []
        try:
            fds.append(log_file(f"byhand log {rank}", log_bytes))
            for name in ("output", "stack", "result"):
                fds.append(new_file(f"byhand {name} {rank}"))
        except OSError:
            for end in (ours, theirs):
                end.close()
            for fd in fds:
                os.close(fd)
            raise
        # a rank's threads write at once: appending, none overwrites another
        fcntl.fcntl(fds[1], fcntl.F_SETFL, os.O_APPEND)
        log, output, stack, result = fds
        return cls(rank, ours, log, output, stack, result, RankLog(rank)), [theirs, *fds]

    def close(self) -> None:
        """Close every descriptor."""
        self.control.close()
        for fd in (self.log_fd, self.output_fd, self.stack_fd, self.result_fd):
            os.close(fd)

    def dismiss(self) -> None:
        """Have a rank that has left end its process, and so its connections to the others."""
        with contextlib.suppress(OSError):  # it has ended already
            self.control.shutdown(socket.SHUT_WR)

    def receive(self) -> bool:
        """Be woken: the rank has written its result, or left. False when it will wake nobody more.

        Raises:
            TamperedError: the result is none.
        """
        try:
            wakes = len(self.control.recv(1 << 16))
        except ConnectionError:
            self.has_its_call = False
            self.has_left = True
            return False
        self._wakes += wakes
        self.has_left = not wakes or self._wakes > 1
        if self._wakes > MOST_WAKES:
            raise TamperedError(f"rank {self.rank} says more than any rank does")
        if wakes and self.header is None:
            self._read_header()
        return wakes > 0

    def started(self) -> bool:
        """Whether a rank that has ended took its call, and so was more than our own code.

        The kernel says so, whatever the rank did: a socket that ends unread is reset.
        """
        with contextlib.suppress(BlockingIOError):
            try:
                self.control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except ConnectionError:
                self.has_its_call = False
        return self.has_its_call

    def _read_header(self) -> None:
        length = int.from_bytes(os.pread(self.result_fd, 8, 0), "big")
        try:
            header = json.loads(os.pread(self.result_fd, min(length, MAX_HEADER), 8))
            if type(header["kind"]) is not str:
                raise ValueError("kind")
        except (ValueError, TypeError, KeyError, RecursionError):
            raise TamperedError(f"rank {self.rank} sent a reply that no rank writes") from None
        self.header, self._value_at = header, 8 + length

    @property
    def logged(self) -> int:
        """Bytes in the log, read and unread."""
        return logged(self.log_fd)

    @property
    def result_bytes(self) -> int:
        """Bytes in the file of the result."""
        return os.fstat(self.result_fd).st_size

    def take_answer(self) -> tuple[dict[str, Any], bytes]:
        """The result's header and what follows it; another result may be written after it."""
        header, self.header = self.header, None
        assert header is not None, f"rank {self.rank} was asked before its result was there"
        return header, read_all(self.result_fd, self.result_bytes, self._value_at)

    def value(self, read: Callable[[int, int], Any]) -> Any:
        """What the function returned: `read` takes the result's descriptor and where it begins.

        Raises:
            TamperedError: the bytes are no value. TypeError: it cannot be made anew here.
        """
        try:
            return read(self.result_fd, self._value_at)
        except ValueError as error:
            message = f"rank {self.rank} returned bytes that are no value: {error}"
            raise TamperedError(message) from None

    def failure(self) -> Failure:
        """The exception that the result tells of, as text."""
        header = self.header or {}
        frames = [
            (plain_text(frame[0], 1000), frame[1], plain_text(frame[2], 1000))
            for frame in as_list(header.get("frames"))[-50:]
            if isinstance(frame, list) and len(frame) == 3 and type(frame[1]) is int
        ]
        exception = plain_text(header.get("exception", "Exception"), 200)
        message = plain_text(header.get("message", ""))
        return Failure(self.rank, time.monotonic(), exception, message, frames)

    def read_log(self) -> list[Event] | None:
        """The calls logged since the last look; None when nothing at all was.

        Reads LOOK_BYTES at most: a rank may write faster than this reads.
        """
        data = self.log_text(self.log_bytes)
        self.log_bytes += len(data)
        return self.log.feed(data) if data else None

    def forget(self, most: int) -> list[Event]:
        """The oldest calls, which are over, if there are many more than `most`; they are let go."""
        if calls := self.log.forget(most):
            shorten_log(self.log_fd, self.log_bytes)
        return calls

    def log_text(self, at: int) -> bytes:
        """Some of the log's bytes, from `at` on."""
        return read_log(self.log_fd, at, LOOK_BYTES)

    @property
    def stack_bytes(self) -> int:
        """Bytes in the file of the stacks."""
        return os.fstat(self.stack_fd).st_size

    def has_told_its_stack(self, since: int) -> bool:
        """Whether a stack was written to its end, after the file had `since` bytes."""
        end = self.stack_bytes
        last = read_all(self.stack_fd, end, max(0, end - 100))
        return end > since and bool(_OUTERMOST.search(last))

    def stack(self) -> list[tuple[str, int]]:
        """File and line of each frame that the rank last wrote, innermost first."""
        end = self.stack_bytes
        text = read_all(self.stack_fd, end, max(0, end - MAX_STACK)).decode(errors="replace")
        last = text.rpartition("most recent call first")[2].splitlines()[:MAX_FRAMES]
        found = (_FRAME.match(line[:MAX_FRAME]) for line in last)
        return [(_ESCAPED.sub(_letter, frame[1]), int(frame[2])) for frame in found if frame]

    def line(self) -> str:
        """The innermost line of the reader's in the last stack; "" if none."""
        return sources.readers_line(self.stack())

    def is_inside_torch(self) -> bool:
        """Whether the last stack's innermost frame is torch's own."""
        stack = self.stack()
        return bool(stack) and sources.is_torch(stack[0][0])


def _letter(escaped: re.Match[str]) -> str:
    """The letter that is meant; none that would not be seen."""
    letter = chr(int(escaped[escaped.lastindex or 0], 16))
    return letter if letter.isprintable() else escaped[0]


def memory_file(data: bytes) -> int:
    """The descriptor of a file in memory that holds `data`."""
    fd = new_file("byhand")
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def send_calls(
    members: list[Member],
    header: dict[str, Any],
    calls: list[bytes],
    streams: Sequence[Sequence[int]] = (),
) -> None:
    """Give each rank its call, in a memory file that ranks with the same call share.

    streams: as in Options.
    """
    message = json.dumps(header).encode()
    files: dict[int, int] = {}
    try:
        given = streams or [()] * len(members)
        for member, call, own in zip(members, calls, given, strict=True):
            if id(call) not in files:
                files[id(call)] = memory_file(call)
            member.has_input = len(own) > 2
            try:
                send_message(member.control, message, [files[id(call)], *own])
            except ConnectionError:  # it died: see exits
                member.has_its_call = False
    finally:
        for file in files.values():
            os.close(file)
