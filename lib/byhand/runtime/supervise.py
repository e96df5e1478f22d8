"""Watches one team of ranks: collects results, and turns every other ending into a sentence.

The supervisor sleeps until a rank replies or ends, and otherwise looks every 50 ms at the ranks'
logs. It never asks a rank anything, so watching costs the ranks nothing.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import cloudpickle

from byhand.runtime import codec, sources
from byhand.runtime.errors import (
    DeadlineError,
    DeadlockError,
    Failure,
    RankError,
    Report,
    TamperedError,
    describe_exit,
)
from byhand.runtime.ledger import OPS, Event, Ledger
from byhand.runtime.matching import Matcher, explain, ranks_text, stuck
from byhand.runtime.run import Run
from byhand.runtime.trace import Call, RankLog

TICK = 0.05
GRACE = 0.2  # how long a failure waits for the failures that it causes, or that caused it
OUTPUT_BYTES = 16 << 20
LOST_PEER = re.compile(r"[Cc]onnection (closed|reset|refused)|Broken pipe|Socket closed")


@dataclass
class Member:
    """The launching process's ends of one rank."""

    rank: int
    control: socket.socket
    log_fd: int
    output_fd: int
    stack_fd: int
    log: RankLog
    log_read: int = 0
    reply: bytearray = field(default_factory=bytearray)
    header: dict[str, Any] | None = None

    def close(self) -> None:
        """Close every descriptor."""
        self.control.close()
        for fd in (self.log_fd, self.output_fd, self.stack_fd):
            os.close(fd)


def read_all(fd: int, limit: int) -> bytes:
    """The first `limit` bytes of a memory file."""
    parts, at = [], 0
    while at < limit:
        part = os.pread(fd, min(1 << 20, limit - at), at)
        if not part:
            break
        parts.append(part)
        at += len(part)
    return b"".join(parts)


class Supervisor:
    """Waits for one team; `run` returns its Run or raises the LaunchError that explains."""

    def __init__(
        self,
        members: list[Member],
        exits: Callable[[], dict[int, int]],
        dump_stacks: Callable[[], None],
        trusted: bool,
        limits: dict[str, int],
    ):
        self.members = members
        self.exits = exits  # {rank: exit code} of the ranks that ended so far
        self.dump_stacks = dump_stacks  # lets every live rank write its Python stack
        self.trusted = trusted
        self.output_bytes = limits.get("output_bytes", OUTPUT_BYTES)
        self.reply_bytes = limits.get("reply_bytes", codec.MAX_BYTES)
        self.matcher = Matcher()
        self.values: dict[int, Any] = {}
        self.failures: dict[int, Failure] = {}
        self.notes: list[str] = []
        self.backend: str | None = None

    def run(self, server_socket: socket.socket, deadline: float) -> Run:
        """Supervise until every rank has returned.

        Raises:
            RankError, DeadlockError, DeadlineError, TamperedError: see byhand.runtime.errors.
        """
        until = time.monotonic() + deadline
        suspected: tuple[str, int] | None = None
        with selectors.DefaultSelector() as selector:
            selector.register(server_socket, selectors.EVENT_READ)
            for member in self.members:
                selector.register(member.control, selectors.EVENT_READ, member)
            while len(self.values) < len(self.members):
                self.wait(selector, min(TICK, max(0.0, until - time.monotonic())))
                news = self.read_logs()
                if self.matcher.problem:
                    self.settle(selector)
                    self.raise_deadlock(self.matcher.problem)
                if self.failures:
                    self.settle(selector)
                    self.raise_failure()
                reason = self.stuck()
                if reason is not None and suspected == (reason, 0) and not news:
                    self.raise_deadlock(reason)
                suspected = None if reason is None else (reason, 0)
                if time.monotonic() >= until:
                    self.raise_deadline(deadline)
        self.read_logs()
        if self.matcher.problem:
            self.raise_deadlock(self.matcher.problem)
        return self.result()

    def wait(self, selector: selectors.BaseSelector, seconds: float) -> None:
        """Sleep until something is to be read, and read it."""
        for key, _ in selector.select(seconds):
            if key.data is None:
                self.note_exits()
            elif not self.receive(key.data):
                selector.unregister(key.data.control)

    def note_exits(self) -> None:
        for rank, code in self.exits().items():
            if rank not in self.values and rank not in self.failures:
                self.failures[rank] = Failure(rank, time.monotonic(), exit_code=code)

    def receive(self, member: Member) -> bool:
        """Read what a rank replied. False when nothing more will come."""
        try:
            data = member.control.recv(1 << 20)
        except ConnectionError:
            data = b""
        if not data:
            return False
        member.reply += data
        if len(member.reply) > self.reply_bytes + (1 << 20):
            raise TamperedError(f"rank {member.rank} returned more than {self.reply_bytes:,} bytes")
        if member.header is None and len(member.reply) >= 8:
            self.read_header(member)
        if member.header is not None and len(member.reply) >= member.header["body"]:
            self.take_reply(member)
        return True

    def read_header(self, member: Member) -> None:
        length = int.from_bytes(member.reply[:8], "big")
        if length > 1 << 20:
            raise TamperedError(f"rank {member.rank} sent a reply that no rank writes")
        if len(member.reply) < 8 + length:
            return
        try:
            header = json.loads(member.reply[8 : 8 + length])
            if type(header["body"]) is not int or type(header["kind"]) is not str:
                raise ValueError("body and kind")
        except (ValueError, TypeError, KeyError):
            raise TamperedError(f"rank {member.rank} sent a reply that no rank writes") from None
        member.header = header
        del member.reply[: 8 + length]

    def take_reply(self, member: Member) -> None:
        header, rank = member.header, member.rank
        notes = header.get("notes", [])
        self.notes = self.notes or [str(note) for note in notes][:100]
        if header["kind"] == "error":
            self.failures.setdefault(rank, _failure(rank, header))
        elif rank not in self.values:
            self.values[rank] = self.decode(rank, header["kind"], bytes(member.reply))
            backend = header.get("backend")
            self.backend = str(backend) if backend is not None else self.backend

    def decode(self, rank: int, kind: str, body: bytes) -> Any:
        if kind == "pickle" and self.trusted:
            return cloudpickle.loads(body)
        try:
            return codec.decode(body)
        except codec.CodecError as error:
            raise TamperedError(f"rank {rank} returned bytes that are no value: {error}") from None

    def read_logs(self) -> bool:
        """Take in what the ranks logged since the last look. True when there was anything."""
        news: list[Call] = []
        anything = False
        for member in self.members:
            while data := os.pread(member.log_fd, 1 << 20, member.log_read):
                anything = True
                member.log_read += len(data)
                news += member.log.feed(data)
            if os.fstat(member.output_fd).st_size > self.output_bytes:
                self.failures.setdefault(
                    member.rank,
                    Failure(
                        member.rank,
                        time.monotonic(),
                        "OutputLimit",
                        f"it printed more than {self.output_bytes:,} bytes",
                    ),
                )
        for call in sorted(news, key=lambda call: call.start):
            self.matcher.add(call)
        return anything

    def settle(self, selector: selectors.BaseSelector) -> None:
        """Give the other ranks a moment to fail too, so that the cause can be told apart."""
        until = time.monotonic() + GRACE
        while time.monotonic() < until and len(self.failures) < len(self.members):
            self.wait(selector, 0.02)
        self.read_logs()

    def stuck(self) -> str | None:
        gone = {rank: "returned" for rank in self.values}
        return stuck([member.log for member in self.members], gone, self.matcher)

    def reports(self) -> list[Report]:
        """Where every rank is now."""
        if len(self.values) + len(self.failures) < len(self.members):
            self.dump_stacks()
            time.sleep(0.05)
        return [self.report(member) for member in self.members]

    def report(self, member: Member) -> Report:
        rank, call = member.rank, member.log.waiting
        failure = self.failures.get(rank)
        if rank in self.values:
            state, call = "returned", call or self.matcher.culprits.get(rank)
        elif failure is not None:
            state = "died" if failure.exit_code is not None else "raised"
            call = call or self.matcher.culprits.get(rank)
        else:
            state, call = (
                ("waiting", call) if call else ("running", self.matcher.culprits.get(rank))
            )
        if call is None:
            line = self.place_of(failure) if failure else ""
            line = self.stack_line(member) if state == "running" else line
            return Report(rank, state, source=line)
        return Report(
            rank,
            state,
            call.op,
            call.group,
            call.peer,
            call.shape,
            call.dtype,
            sources.place(*call.source),
        )

    def place_of(self, failure: Failure) -> str:
        return sources.place(*failure.frames[-1][:2]) if failure.frames else ""

    def stack_line(self, member: Member) -> str:
        """The innermost line outside torch and this package in the rank's last dumped stack."""
        text = read_all(member.stack_fd, 1 << 16).decode(errors="replace")
        for filename, line in re.findall(r'File "(.+)", line (\d+)', text):
            if not re.search(r"/torch/|/byhand/runtime/|<frozen ", filename):
                return sources.place(filename, int(line))
        return ""

    def raise_deadlock(self, reason: str) -> NoReturn:
        raise DeadlockError(reason, self.reports())

    def raise_deadline(self, deadline: float) -> NoReturn:
        late = [member.rank for member in self.members if member.rank not in self.values]
        raise DeadlineError(
            f"{ranks_text(late)} did not return within the deadline of {deadline:g} s",
            self.reports(),
        )

    def raise_failure(self) -> NoReturn:
        """Raise the failure that came first; those it caused are lost connections."""
        if self.matcher.problem:
            self.raise_deadlock(self.matcher.problem)
        causes = [f for f in self.failures.values() if not LOST_PEER.search(f.message)]
        if not causes:
            self.raise_if_left()
        died = [f for f in causes if f.exit_code is not None]
        first = min(died or causes or self.failures.values(), key=lambda f: f.moment)
        if first.exit_code is not None:
            what = describe_exit(first.exit_code)
            line = self.stack_line(self.members[first.rank])
            what += f", at {line}" if line else ""
            raise RankError(
                first.rank,
                f"rank {first.rank} died: {what}",
                "",
                first.exit_code,
                None,
                self.reports(),
            )
        text = sources.traceback_text(first.frames, first.message)
        place = self.place_of(first)
        where = f" at {place}" if place else ""
        raise RankError(
            first.rank,
            f"rank {first.rank} raised {first.exception}{where}: "
            f"{first.message.removeprefix(first.exception + ': ')}",
            text,
            None,
            first.exception,
            self.reports(),
        )

    def raise_if_left(self) -> None:
        """Raise a DeadlockError if ranks lost a peer because another rank left early."""
        gone = {rank: "returned" for rank in self.values}
        waiting = {
            m.rank: m.log.waiting
            for m in self.members
            if m.rank not in gone and m.log.waiting and not m.log.waiting.matched
        }
        if gone and waiting:
            self.raise_deadlock(explain(waiting, gone, self.matcher))

    def result(self) -> Run:
        """The finished run, times counted from the first rank's beginning."""
        logs = [member.log for member in self.members]
        if any(log.began is None or log.ended is None for log in logs):
            raise TamperedError("a rank returned without the beginning and end in its log")
        zero = min(log.began for log in logs)
        spans = [(log.began - zero, log.ended - zero) for log in logs]
        output = [
            read_all(m.output_fd, self.output_bytes).decode(errors="replace") for m in self.members
        ]
        ledger = Ledger([event for log in logs for event in _events(log, zero)])
        return Run(
            [self.values[rank] for rank in range(len(logs))],
            output,
            ledger,
            [log.peak_bytes for log in logs],
            spans,
            max(end for _, end in spans),
            self.backend,
            self.notes,
        )


def _events(log: RankLog, zero: float) -> list[Event]:
    return [call.event(zero, sources.place(*call.source)) for call in log.calls if call.op in OPS]


def _failure(rank: int, header: dict[str, Any]) -> Failure:
    """A rank's error reply, field by field, as text."""
    frames = []
    for frame in header.get("frames", []):
        if isinstance(frame, list) and len(frame) == 3 and type(frame[1]) is int:
            frames.append((str(frame[0]), frame[1], str(frame[2])))
    return Failure(
        rank,
        time.monotonic(),
        str(header.get("exception", "Exception"))[:200],
        str(header.get("message", ""))[:20_000],
        frames[-50:],
    )
