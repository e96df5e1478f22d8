"""What a launch can end in, other than results. Each error is a sentence and a table by rank."""

from __future__ import annotations

import copyreg
import itertools
import signal
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from byhand.words import group_text


@dataclass(frozen=True)
class Report:
    """Where one rank was when the launch ended.

    `state` is "waiting", "running", "returned", "raised" or "died"; `call` is the communication
    call it waits in (None when it waits in none), `group` the global ranks of that call, `peer`
    the other rank of a send or receive, `source` the line that made the call. `group_number`:
    of several groups of the same ranks, 0 is the default one, 1 the first that new_group made.
    """

    rank: int
    state: str
    call: str | None = None
    group: tuple[int, ...] | None = None
    peer: int | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    source: str = ""
    group_number: int | None = None

    def cells(self) -> tuple[str, ...]:
        """This report as one row of the table that an error prints."""
        partner = ""
        if self.peer is not None:
            partner = f"peer {self.peer}"
        elif self.group is not None:
            partner = group_text(self.group, self.group_number)
        tensor = "" if self.shape is None else f"{list(self.shape)} {self.dtype}"
        return (str(self.rank), self.state, self.call or "", partner, tensor, self.source)


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Rows of text as one left-aligned table, a line each."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [header, *rows]
    ]
    return "\n".join(lines)


PAGE = 88  # characters of a line
REPORT_HEADER = ("rank", "state", "call", "with", "tensor", "line")


def with_table(sentence: str, reports: Sequence[Report]) -> str:
    """The sentence, in lines that fit a notebook, and below it a row for each report."""
    if not reports:
        return sentence
    first, gap, rest = sentence.partition("\n\n")
    lines = (
        textwrap.wrap(line, PAGE, break_long_words=False, break_on_hyphens=False) or [""]
        for line in first.split("\n")
    )
    first = "\n".join(itertools.chain.from_iterable(lines))
    rows = table(REPORT_HEADER, [report.cells() for report in reports])
    return f"{first}{gap}{rest}\n\n{rows}"


def _by_attributes(error: BaseException) -> tuple[Any, ...]:
    """How an error is pickled, whose __init__ takes other things than it keeps in `args`."""
    attributes = {**error.__dict__, "args": error.args}
    return copyreg.__newobj__, (type(error),), attributes  # type: ignore[attr-defined]


class LaunchError(RuntimeError):
    """A launch that gave no results; `reports` says where each rank was.

    `run`: a Run of what had been recorded by then, without results; None behind walls, or if no
    rank ran.
    """

    run: Any = None
    __reduce__ = _by_attributes

    def __init__(self, message: str, reports: Sequence[Report] = ()):
        self.reports = list(reports)
        self.sentence = message
        super().__init__(with_table(message, self.reports))

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the message and its notes, not the frames of the launcher."""
        return [f"{type(self).__name__}: {self}", *getattr(self, "__notes__", [])]


class RankError(LaunchError):
    """One rank raised, or its process died.

    `rank` is which, `traceback` the text of what it raised ("" when it died), `exit_code` its
    exit status or minus the signal that killed it (None when it raised), `exception` the name of
    the exception's type.

    >>> def work(rank, world_size):
    ...     return 1 // (rank - 1)
    >>> try:
    ...     launch(work, 2)
    ... except RankError as error:
    ...     print(error.rank, error.exception)
    1 ZeroDivisionError
    """

    def __init__(
        self,
        rank: int,
        sentence: str,
        traceback: str = "",
        exit_code: int | None = None,
        exception: str | None = None,
        reports: Sequence[Report] = (),
    ):
        self.rank = rank
        self.traceback = traceback
        self.exit_code = exit_code
        self.exception = exception
        super().__init__(sentence + ("\n\n" + traceback.rstrip() if traceback else ""), reports)
        self.sentence = sentence


class DeadlockError(LaunchError):
    """The ranks' calls do not fit together: some wait for what will never come.

    `reason` is the sentence that explains it, `reports` one row per rank.

    >>> launch(lambda rank, world_size: rank == 1 or dist.barrier(), 2)
    Traceback (most recent call last):
        ...
    byhand.runtime.errors.DeadlockError: rank 0 waits in barrier (call 1 on group [0, 1]),
        but rank 1 returned after 0 such ...
    """

    def __init__(self, reason: str, reports: Sequence[Report]):
        self.reason = reason
        super().__init__(reason, reports)

    @property
    def rule(self) -> str:
        """The reason's last sentence: what every program must keep to, no word of it from this."""
        _, end, rule = self.reason.rpartition(". ")
        return rule if end else ""


class DeadlineError(LaunchError, TimeoutError):
    """The deadline passed while ranks were still running.

    >>> import time
    >>> launch(lambda rank, world_size: time.sleep(60), 2, deadline=0.5)
    Traceback (most recent call last):
        ...
    byhand.runtime.errors.DeadlineError: ranks 0 and 1 did not return within the deadline of
        0.5 s ...
    """


class Interrupted(KeyboardInterrupt):
    """Someone stopped the launch; `reports` says where each rank was, `run` is a LaunchError's.

    No LaunchError: what handles those lets the stop button through.
    """

    run: Any = None
    __reduce__ = _by_attributes

    def __init__(self, reports: Sequence[Report]):
        self.reports = list(reports)
        super().__init__(with_table("the launch was stopped. Each rank was here:", self.reports))

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the table, not the frames of the launcher."""
        return [f"KeyboardInterrupt: {self}"]


class Terminated(KeyboardInterrupt):
    """SIGTERM came, and not the SIGINT of Ctrl-C: a program's ranks are then sent the same."""


class TamperedError(LaunchError):
    """A rank sent something that this library does not write."""


class SandboxError(LaunchError):
    """The ranks' fork server could not be started, or ended by itself."""


class NetworkError(LaunchError):
    """The kernel, or a missing tool, does not allow a virtual network here."""


@dataclass
class Failure:
    """One rank's end that is not a result, as the supervisor collects it."""

    rank: int
    moment: float
    exception: str = ""
    message: str = ""
    frames: list[tuple[str, int, str]] = field(default_factory=list)
    exit_code: int | None = None


def describe_exit(code: int) -> str:
    """An exit status in words: `os._exit(3)`, a signal's name, or the likely out-of-memory kill."""
    if code >= 0:
        return f"its process exited with code {code} before it had finished"
    name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
    hints = {
        "SIGSEGV": " (a segmentation fault)",
        "SIGABRT": " (a library aborted; its last words are in the rank's output)",
        "SIGKILL": " (as is done when memory runs out, or the ranks hold more than they may)",
        "SIGXCPU": " (its CPU time was used up)",
        "SIGXFSZ": " (it wrote a file larger than allowed)",
    }
    return f"its process was killed by {name}{hints.get(name, '')}"
