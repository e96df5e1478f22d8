"""Why a launch gave no results: from what the ranks left, the error that explains it."""

from __future__ import annotations

import re

from byhand.runtime.errors import (
    DeadlineError,
    DeadlockError,
    Failure,
    LaunchError,
    RankError,
    Report,
    describe_exit,
)
from byhand.runtime.ledger import Event
from byhand.runtime.process.member import Member
from byhand.runtime.trace import sources
from byhand.runtime.watch.explain import explain, let_go, lost
from byhand.runtime.watch.matching import Matcher
from byhand.words import ranks_text

_LOST_PEER = re.compile(  # as gloo and torch say it: a server of the reader's may refuse one too
    r"(?s)(?=RuntimeError: .*[Gg]loo|[\w.]*\bDist\w*Error: )"
    r".*([Cc]onnection (closed|reset|refused)|Broken pipe|Socket closed)"
)
_ASKED = re.compile("EOFError: EOF when reading a line|(bdb.)?BdbQuit")  # input() or breakpoint()
_NOT_TAKEN = re.compile(
    r"TypeError: \S+\(\) .*(positional argument|takes no arguments|keyword-only argument)"
)
_PASSED = ". launch passes rank and world_size before args; call passes its arguments alone."


class PostMortem:
    """The members of a team at its end: which returned, which failed, how their calls matched.

    `cells`: as in sources.code_line. `idle`: the calls in which ranks wait inside torch's C++.
    """

    def __init__(
        self,
        members: list[Member],
        returned: set[int],
        failures: dict[int, Failure],
        matcher: Matcher,
        cells: dict[str, str] | None = None,
        idle: dict[int, Event] | None = None,
    ):
        self.members = members
        self.returned = returned
        self.failures = failures
        self.matcher = matcher
        self.cells = cells
        self.idle = idle or {}

    def deadlock(self, reason: str) -> DeadlockError:
        """The calls do not fit together, for this reason."""
        return DeadlockError(reason, self.reports())

    def deadline(self, seconds: float) -> DeadlineError:
        """Some ranks were still at it; or, if all returned, their logs took too long to read."""
        ranks = {member.rank for member in self.members}
        late = ranks - self.returned
        what = "did not return" if late else "returned, but not all of their calls were read"
        sentence = f"{ranks_text(late or ranks)} {what} within the deadline of {seconds:g} s"
        if sends := self._let_go():
            sentence += f". {let_go(sends[0])}"
        return DeadlineError(sentence, self.reports())

    def _let_go(self) -> list[Event]:
        """The sends that ranks wait to receive, and whose ranks returned without a wait for them.

        No deadlock: while somebody keeps a send's work, it goes on, for minutes on a slow link.
        """
        waiting = (member.log.waiting for member in self.members)
        sends = (self.matcher.unawaited(call) for call in waiting if call is not None)
        return [send for send in sends if send is not None and send.rank in self.returned]

    def failure(self) -> LaunchError:
        """Some ranks failed: the error for the one that failed first and lost no connection."""
        if self.matcher.problem:
            return self.deadlock(self.matcher.problem)
        causes = [f for f in self.failures.values() if not _LOST_PEER.match(f.message)]
        if not causes and (reason := self._peer_that_left()):
            return self.deadlock(reason)
        died = [failure for failure in causes if failure.exit_code is not None]
        first = min(died or causes or self.failures.values(), key=lambda failure: failure.moment)
        code = first.exit_code
        return self._raised(first) if code is None else self._died(first, code)

    def _died(self, failure: Failure, code: int) -> RankError:
        line = self.members[failure.rank].line()
        at = f", at {line}" if line else ""
        sentence = f"rank {failure.rank} died: {describe_exit(code)}{at}"
        return RankError(failure.rank, sentence, "", code, None, self.reports())

    def _raised(self, failure: Failure) -> RankError:
        line = self._line(failure)
        message = re.sub(rf"^([\w.]+\.)?{re.escape(failure.exception)}: ", "", failure.message)
        at = f" at {line}" if line else ""
        if failure.frames:  # the whole message stands below them
            message = message.partition("\n")[0]
        sentence = f"rank {failure.rank} raised {failure.exception}{at}: {message}"
        sentence += f". {self._unanswered(failure.rank)}" if _ASKED.match(failure.message) else ""
        sentence += _PASSED if _NOT_TAKEN.match(failure.message) and not failure.frames else ""
        text = ""  # without a line of the reader's, it would be the message once more
        if failure.frames:
            text = sources.traceback_text(failure.frames, failure.message, self.cells)
        return RankError(failure.rank, sentence, text, None, failure.exception, self.reports())

    def _unanswered(self, rank: int) -> str:
        """Why nobody answers a rank that asks."""
        listening = [member.rank for member in self.members if member.has_input]
        if rank in listening:
            return f"The standard input of rank {rank} has ended."
        if listening:
            whose = f"The standard input is that of {ranks_text(listening)} alone"
            return f"{whose}: nobody can answer rank {rank}."
        return "A rank has no keyboard: nobody can answer it."

    def _peer_that_left(self) -> str | None:
        """Why ranks that lost a connection did, if another rank had left too early."""
        waiting = {
            member.rank: member.log.waiting
            for member in self.members
            if member.rank not in self.returned and member.log.waiting
        }
        calls = {rank: call for rank, call in waiting.items() if not call.matched}
        if not calls:
            return None
        if self.returned:
            return explain(calls, dict.fromkeys(self.returned, "returned"), self.matcher)
        absent = self.matcher.missing(calls[min(calls)]) - set(calls)
        return lost(calls, absent, self.matcher) if absent else None

    def reports(self) -> list[Report]:
        """Where every rank is, or was when it left."""
        return [self._report(member) for member in self.members]

    def _report(self, member: Member) -> Report:
        rank, failure = member.rank, self.failures.get(member.rank)
        call = member.log.waiting or self.matcher.culprits.get(rank)
        if rank in self.returned:
            return self._with_call(rank, "returned", call, "")
        if failure is not None:
            state = "raised" if failure.exit_code is None else "died"
            return self._with_call(rank, state, call, self._line(failure))
        call = call or self.idle.get(rank)
        state = "waiting" if member.log.waiting or rank in self.idle else "running"
        return self._with_call(rank, state, call, "" if call else member.line())

    def _line(self, failure: Failure) -> str:
        return sources.readers_line((file, line) for file, line, _ in reversed(failure.frames))

    def _with_call(self, rank: int, state: str, call: Event | None, line: str) -> Report:
        if call is None:
            return Report(rank, state, source=line)
        one_shape = call.dtype and not call.sends  # not of a barrier, nor of an all-to-all
        shape, dtype = (call.shape, call.dtype) if one_shape else (None, None)
        number = self.matcher.group_number(call) if call.peer is None else None
        where = call.group, call.peer, shape, dtype, call.source, number
        return Report(rank, state, call.op, *where)
