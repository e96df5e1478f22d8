"""Watches one team of ranks until all have returned, or until it is clear that they will not.

The supervisor sleeps until a rank replies or ends, and otherwise looks every 50 ms at the ranks'
logs. It asks a rank for nothing while the rank is making progress.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from byhand.runtime.errors import Failure, Interrupted, LaunchError, TamperedError, Terminated
from byhand.runtime.ledger import OPS, SETUP_OPS, Event, Ledger
from byhand.runtime.process.member import Deadline, Member, read_all
from byhand.runtime.process.place import Place
from byhand.runtime.process.team import Team
from byhand.runtime.run import Run
from byhand.runtime.trace.log import CAPACITY, RankLog, long_capacity
from byhand.runtime.watch.explain import explain, unmet
from byhand.runtime.watch.matching import Matcher
from byhand.runtime.watch.post_mortem import PostMortem
from byhand.words import plain_text

TICK = 0.05
LEAVE_SECONDS = 5.0  # in which a program's rank that raised, or was stopped, has left
GRACE = 0.2  # how long the first failure waits for those that it caused, or that caused it
MEET_SECONDS = 60.0  # in which ranks that all want to meet have met, if they ever will
QUIET = 0.5  # silence after which ranks are asked where they are
OUTPUT_BYTES = 16 << 20
REPLY_BYTES = 1 << 30
KEPT_CALLS = 50_000  # of all ranks, where older ones are let go


class Supervisor:
    """Waits for one team; `run` returns its Run or raises the LaunchError that explains.

    `place` says what ranks may write, and whether they are trusted: if not, the tracebacks of what
    they raise show code of `cells` alone: {label: text}. `older`, `may_leave`: see Options.
    """

    def __init__(
        self,
        team: Team,
        place: Place,
        cells: Mapping[str, str],
        older: Callable[[Event], None] | None = None,
        may_leave: bool = False,
    ):
        self.team = team
        self.members = team.members
        self.place = place
        self.cells = None if place.trusted else dict(cells)
        self.output_bytes = place.limits.get("output_bytes", OUTPUT_BYTES)
        self.older = older
        self.may_leave = may_leave
        most = CAPACITY if older is None else long_capacity()
        self.log_bytes = min(place.limits.get("log_bytes", most), most)
        self.reply_bytes = place.limits.get("reply_bytes", REPLY_BYTES * len(self.members))
        self.matcher = Matcher()
        self.values: dict[int, Any] = {}
        self.failures: dict[int, Failure] = {}
        self.idle = IdleRanks(team)
        self.patience = MEET_SECONDS  # with ranks that all want to meet
        self.heard = time.monotonic()  # when the ranks last logged anything

    def run(self, deadline: Deadline) -> Run:
        """Supervise until every rank has returned.

        Raises:
            RankError, DeadlockError, DeadlineError, TamperedError, Interrupted: see
                byhand.runtime.errors; LaunchError: a rank could not start.
        """
        try:
            return self._run(deadline)
        except LaunchError as error:
            error.run = self._recorded()
            raise
        except KeyboardInterrupt as stop:
            with contextlib.suppress(LaunchError):  # a record may have been read by half
                self._read_logs()
            stopped = Interrupted(self._post_mortem().reports())
            stopped.run = self._recorded()
            if self.may_leave:
                self._let_leave(signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)
            raise stopped from None

    def _run(self, deadline: Deadline) -> Run:
        suspected: str | None = None
        if deadline.seconds < math.inf:  # who gives more waits for more
            self.patience = max(self.patience, deadline.seconds)
        with self._listening() as selector:
            while len(self.values) < len(self.members):
                self._wait(selector, min(TICK, deadline.left))
                news = self._read_logs()
                self.heard = time.monotonic() if news else self.heard
                if self.matcher.problem or self.failures:
                    self._settle(selector)
                    raise self._post_mortem().failure()
                reason = self._stuck(news)
                if reason is not None and reason == suspected and not news:
                    raise self._post_mortem().deadlock(reason)
                suspected = reason
                if len(self.values) < len(self.members) and deadline.is_over():
                    raise self._post_mortem().deadline(deadline.seconds)
        while self._read_logs() and not self.failures:
            if deadline.is_over():
                raise self._post_mortem().deadline(deadline.seconds)
        if self.matcher.problem or self.failures:
            raise self._post_mortem().failure()
        return self._result()

    @contextlib.contextmanager
    def _listening(self) -> Iterator[selectors.BaseSelector]:
        with selectors.DefaultSelector() as selector:
            selector.register(self.team.news, selectors.EVENT_READ)
            for member in self.members:
                selector.register(member.control, selectors.EVENT_READ, member)
            yield selector

    def _wait(self, selector: selectors.BaseSelector, seconds: float) -> None:
        """Sleep until something is to be read, and read it."""
        for key, _ in selector.select(seconds):
            if key.data is None:
                continue
            more = key.data.receive()
            if (header := key.data.header) is not None:
                self._take_result(key.data, header["kind"])
            if not more:
                selector.unregister(key.data.control)
        self._note_exits()  # one may have been told while something else was asked

    def _note_exits(self) -> None:
        """Take in which ranks ended.

        Raises:
            LaunchError: one did before its function began, and no function can have ended it.
        """
        for rank, code in self.team.exits().items():
            if rank in self.values or rank in self.failures:
                continue
            begun = any(member.logged for member in self.members)
            if not self.members[rank].started() and (code >= 0 or not begun):
                output = read_all(self.members[rank].output_fd, 1 << 20).decode(errors="replace")
                last = (output.strip().splitlines() or ["it said nothing"])[-1]
                raise LaunchError(f"rank {rank} could not start: {plain_text(last, 1000)}")
            if code == 0 and self.may_leave:
                self.values[rank], self.members[rank].log.ended = None, time.monotonic()
                continue
            self.failures[rank] = Failure(rank, time.monotonic(), exit_code=code)

    def _take_result(self, member: Member, kind: str) -> None:
        if kind == "error":
            self.failures.setdefault(member.rank, member.failure())
        elif sum(each.result_bytes for each in self.members) > self.reply_bytes:
            words = f"the ranks together returned more than {self.reply_bytes:,} bytes"
            self._too_much(member, words)
        elif member.rank not in self.values and member.rank not in self.failures:
            try:
                self.values[member.rank] = member.value(self.place.value)
            except TypeError as error:
                why = "TypeError", str(error)
                self.failures[member.rank] = Failure(member.rank, time.monotonic(), *why)

    def _read_logs(self) -> bool:
        """Take in what the ranks logged since the last look. True when there was anything."""
        read = {member.rank: member.read_log() for member in self.members}
        calls = [call for new in read.values() for call in new or ()]
        for call in sorted(calls, key=lambda call: call.start):
            self.matcher.add(call)
        for member in self.members:
            self._weigh(member)
            if self.older is not None:
                for call in member.forget(KEPT_CALLS // len(self.members)):
                    if call.op in OPS:
                        self.older(call)
        if words := self.place.overweight(len(self.members)):
            self._too_much(self.members[0], words)
        return any(new is not None for new in read.values())

    def _weigh(self, member: Member) -> None:
        """Too much written is a rank's failure, whatever it came to before this was seen."""
        if os.fstat(member.output_fd).st_size > self.output_bytes:
            self._too_much(member, f"it printed more than {self.output_bytes:,} bytes")
        elif member.logged > self.log_bytes:
            self._too_much(member, f"its log of calls is longer than {self.log_bytes:,} bytes")

    def _too_much(self, member: Member, words: str) -> None:
        earlier = self.failures.get(member.rank)
        moment = earlier.moment if earlier else time.monotonic()
        self.failures[member.rank] = Failure(member.rank, moment, "OutputLimit", words)

    def _settle(self, selector: selectors.BaseSelector) -> None:
        """Give the other ranks a moment to fail or clash too, so that the cause can be told.

        And a program that raised the time to run its exit functions, unless somebody stops it.
        """
        began = time.monotonic()
        while time.monotonic() < began + GRACE and len(self.failures) < len(self.members):
            self._wait(selector, 0.02)
        self._read_logs()
        with contextlib.suppress(KeyboardInterrupt):
            while time.monotonic() < began + LEAVE_SECONDS and self._some_leave():
                self._wait(selector, 0.02)

    def _let_leave(self, number: int) -> None:
        """Send a program's ranks the signal that came, and give them time to save and to leave.

        One that has left ends, as under torchrun: another that waits for it is then told so, and
        can leave, too. Who signals a second time will not wait.
        """
        until = time.monotonic() + LEAVE_SECONDS
        with contextlib.suppress(KeyboardInterrupt, LaunchError), self._listening() as selector:
            self.team.interrupt(number)
            while time.monotonic() < until and len(gone := self.team.exits()) < len(self.members):
                for member in self.members:
                    if member.has_left and member.rank not in gone:
                        member.dismiss()
                self._wait(selector, TICK)

    def _some_leave(self) -> bool:
        """Whether exit functions still run, of a rank that has told what it raised."""
        told = [self.members[rank] for rank in self.failures if self.members[rank].header]
        return self.may_leave and not all(member.has_left for member in told)

    def _stuck(self, news: bool) -> str | None:
        """Why no rank can ever go on; None when one still can."""
        gone = dict.fromkeys(self.values, "returned")
        live = [member for member in self.members if member.rank not in gone]
        idle = self.idle.look(news, live)
        calls = [member.log.waiting or idle.get(member.rank) for member in live]
        waiting = {call.rank: call for call in calls if call is not None}
        if not calls or len(waiting) < len(calls):
            return None
        if all(call.matched and call.op in SETUP_OPS for call in waiting.values()):
            waited = time.monotonic() - self.heard
            return unmet(waiting, self.patience) if waited > self.patience else None
        if any(call.matched for call in waiting.values()):
            return None
        return explain(waiting, gone, self.matcher)

    def _post_mortem(self) -> PostMortem:
        live = [m for m in self.members if m.rank not in {*self.values, *self.failures}]
        if live:
            self.idle.ask(live)
            # Who has ended is known by now, however busy the machine is.
            for rank, code in self.team.exits().items():
                if rank not in {*self.values, *self.failures} and self.members[rank].started():
                    self.failures[rank] = Failure(rank, time.monotonic(), exit_code=code)
            with contextlib.suppress(LaunchError):  # what they wrote, too
                self._read_logs()
        ends = set(self.values), self.failures
        return PostMortem(self.members, *ends, self.matcher, self.cells, self.idle.found)

    def _result(self) -> Run:
        """The finished run, times counted from the first rank's beginning."""
        logs = [member.log for member in self.members]
        ends = [(log.began, log.ended) for log in logs]
        spans = [(one, other) for one, other in ends if one is not None and other is not None]
        if len(spans) < len(logs):
            raise TamperedError("a rank returned without the beginning and end in its log")
        return self._as_run(logs, spans)

    def _recorded(self) -> Run | None:
        """What has been recorded of a run without an end: what is under way lasts until now."""
        logs, now = [member.log for member in self.members], time.monotonic()
        if not self.place.trusted or all(log.began is None for log in logs):
            return None
        spans = []
        for log in logs:
            log.began = now if log.began is None else log.began
            log.ended = now if log.ended is None else log.ended
            spans.append((log.began, log.ended))
            if log.waiting is not None:
                log.waiting.wait_end = now
        return self._as_run(logs, spans)

    def _as_run(self, logs: list[RankLog], spans: list[tuple[float, float]]) -> Run:
        zero = min(began for began, _ in spans)
        spans = [(began - zero, ended - zero) for began, ended in spans]
        calls = [call for log in logs for call in log.calls.values() if call.op in OPS]
        for call in calls:
            call.count_from(zero)
        peaks = [log.peak_bytes for log in logs if log.peak_bytes is not None]
        output = [read_all(member.output_fd, self.output_bytes) for member in self.members]
        headers = [member.header or {} for member in self.members]
        return Run(
            results=[self.values.get(rank) for rank in range(len(logs))],
            output=[text.decode(errors="replace") for text in output],
            ledger=Ledger(calls),
            peak_bytes=peaks if len(peaks) == len(logs) else None,
            spans=spans,
            seconds=max(end for _, end in spans),
            backend=next((str(h["backend"]) for h in headers if h.get("backend")), None),
        )


class IdleRanks:
    """Finds ranks that stand still inside torch's C++, where no log says that they wait.

    DDP's reducer waits that way. Such a rank has made a call whose partners are missing, is in
    torch's own code, and wants no CPU time; a rank that computes or sleeps fails one of these.
    """

    def __init__(self, team: Team):
        self.team = team
        self.since = time.monotonic()
        self.used: dict[int, float] | None = None
        self.found: dict[int, Event] = {}

    def look(self, news: bool, live: list[Member]) -> dict[int, Event]:
        """The idle ranks, each with the call that it is in; none until all has been quiet."""
        if news:
            self.since, self.used, self.found = time.monotonic(), None, {}
        silent = [member for member in live if member.log.waiting is None]
        if not silent or time.monotonic() - self.since < QUIET:
            return self.found
        self.since = time.monotonic()
        calls = _outstanding(silent)
        if len(calls) < len(silent):
            return self.found
        before, self.used = self.used, self.team.stacks()
        if before is not None and all(self._is_idle(member, before) for member in silent):
            self.found = calls
        return self.found

    def ask(self, live: list[Member]) -> None:
        """At a launch's end: have all say where they are, and find the idle ones at once."""
        self.used = self.team.stacks()
        calls = _outstanding(m for m in live if m.log.waiting is None)
        if calls and not self.found:
            before, self.used = self.used, self.team.stacks()
            found = [m.rank for m in live if m.rank in calls and self._is_idle(m, before)]
            self.found = {rank: calls[rank] for rank in found}

    def _is_idle(self, member: Member, before: dict[int, float]) -> bool:
        used = (self.used or {}).get(member.rank, 0.0) - before.get(member.rank, 0.0)
        return used < 0.01 and member.is_inside_torch()


def _outstanding(members: Iterable[Member]) -> dict[int, Event]:
    """By rank, the call that it is in, of those that are in one."""
    calls = ((member.rank, member.log.outstanding()) for member in members)
    return {rank: call for rank, call in calls if call is not None}
