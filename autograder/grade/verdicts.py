"""Verdicts: what can become of one question, and how an exception becomes one.

A verdict's message is what the student reads. For a hidden part it is one of a few sentences of
ours: a submission that could add a word, or choose a rank, a call or a signal, could tell the
hidden inputs.
"""

import traceback
from dataclasses import dataclass, field, replace
from typing import Any

from autograder.collect.door import FOREIGN, UNREADABLE
from autograder.release.rules import END_HIDDEN, HIDDEN
from byhand.runtime import (
    DeadlineError,
    DeadlockError,
    LaunchError,
    RankError,
    SandboxError,
    StandIn,
    TamperedError,
)
from byhand.runtime.walls.notebook import NotebookError
from byhand.words import plain_text

PASSED, FAILED, TIMEOUT, DEADLOCK = "passed", "failed", "timeout", "deadlock"
CRASHED, RESOURCE, TAMPERED, INFRASTRUCTURE = "crashed", "resource", "tampered", "infrastructure"
BLANK = "blank"  # left as it was given out
NO_ANSWER = (BLANK, FOREIGN, UNREADABLE)  # there was nothing to judge
VERDICTS = (
    *(PASSED, FAILED, DEADLOCK, TIMEOUT, CRASHED, RESOURCE, TAMPERED),
    *(*NO_ANSWER, INFRASTRUCTURE),
)
MAX_MESSAGE = 8_000
_OUT_OF_MEMORY = ("MemoryError", "OutOfMemoryError", "can't allocate memory", "Cannot allocate")
_ASKED = {  # by what the check that failed looked at: of what a hidden part says it
    "values": "the values, or their shape or type, are",
    "calls": "the number of communication calls is",
    "messages": "the messages that the ranks send are",
    "bytes": "the number of bytes sent is",
    "memory": "the memory held at once is",
}
_ON_RANKS = {  # by the exception that a rank raised
    "CheckError": "the values on a rank, or their shape or type, are not what the statement asks"
    " for",
    "UnwaitedError": "a rank did not wait for a request: call wait() on all that is asynchronous",
    "ChangedError": "a rank changed a tensor on its way to another, before wait() ended",
}
_LIMIT_SIGNALS = (-9, -24, -25)  # SIGKILL when memory runs out, SIGXCPU, SIGXFSZ
_HIDDEN_ENDS = {  # by the verdict: all that is told of a hidden part that ended so
    DEADLOCK: "the ranks' calls do not fit together",
    CRASHED: "a rank's process ended before the function returned",
    RESOURCE: "a rank used more memory, output or another limit than it may",
    TAMPERED: "a rank sent back something that the library does not write",
}


@dataclass(frozen=True)
class Verdict:
    """What became of one test cell: `part` is where it ended, `table` where each rank was.

    `suspicion` is a sentence for the instructor, of its launches.
    `board`: a row of the class's board, as check.board made it; from a test that passed.
    """

    question: str
    verdict: str
    points: int
    max_points: int
    part: str = ""
    hidden: bool = False
    message: str = ""
    table: str = ""
    seconds: float = 0.0
    suspicion: str = ""
    board: dict[str, Any] = field(default_factory=dict)


def passed(
    question: str, points: int, seconds: float, board: dict[str, Any] | None = None
) -> Verdict:
    """All parts of the question passed; `board`: its row of the class's."""
    verdict = Verdict(question, PASSED, points, points, seconds=round(seconds, 3))
    return replace(verdict, board=board or {})


def failed(
    question: str, points: int, source: str, error: BaseException, limit: float, seconds: float
) -> Verdict:
    """The verdict of a test cell that ended in `error`, with its text and the seconds it had."""
    line = _line_of(error, f"<{question}>")
    hidden = _is_hidden(source, line)
    part = str(getattr(error, "part", None) or "")  # check.part says it of what leaves a part
    kind = _kind(error)
    if kind == TIMEOUT:
        message = "it did not finish within the time it may take"
        message += "" if hidden else f", {min(limit, max(seconds, 1)):.0f} s"
    else:
        message = _hidden_message(error) if hidden else _message(error)
    tells_places = kind in (DEADLOCK, TIMEOUT) and not hidden and isinstance(error, LaunchError)
    table = str(error).partition("\n\n")[2] if tells_places else ""
    told = plain_text(message, MAX_MESSAGE), plain_text(table, MAX_MESSAGE), round(seconds, 3)
    return Verdict(question, kind, 0, points, part, hidden, *told)


def infrastructure(question: str, points: int, why: str) -> Verdict:
    """The question could not be judged, through no fault of the submission."""
    return Verdict(question, INFRASTRUCTURE, 0, points, message=why[:MAX_MESSAGE])


def no_answer(question: str, points: int, standing: str, why: str) -> Verdict:
    """There was nothing to judge."""
    return Verdict(question, standing, 0, points, message=why)


def or_blank(verdict: Verdict, untouched: dict[str, list[str]]) -> Verdict:
    """BLANK instead of how a question ended that was left as it was given out."""
    cells = untouched.get(verdict.question)
    if not cells or verdict.verdict in (PASSED, INFRASTRUCTURE):
        return verdict
    why = f"{' and '.join(cells)}: nothing was written here. The cell is as it was given out."
    blank = no_answer(verdict.question, verdict.max_points, BLANK, why)
    return replace(blank, seconds=verdict.seconds)


def first_paragraph(message: str) -> str:
    """A message up to its first empty line."""
    return message.strip().partition("\n\n")[0]


def _kind(error: BaseException) -> str:
    if isinstance(error, DeadlockError):
        return DEADLOCK
    if isinstance(error, DeadlineError):
        return TIMEOUT
    if isinstance(error, TamperedError):
        return TAMPERED
    if isinstance(error, RankError):
        return _rank_kind(error)
    if isinstance(error, (SandboxError, LaunchError, OSError)):
        return INFRASTRUCTURE
    return FAILED


def _rank_kind(error: RankError) -> str:
    text = f"{error.exception} {error.sentence}"
    if error.exception == "OutputLimit" or any(word in text for word in _OUT_OF_MEMORY):
        return RESOURCE
    if error.exit_code is not None:
        return RESOURCE if error.exit_code in _LIMIT_SIGNALS else CRASHED
    return FAILED


def _message(error: BaseException) -> str:
    """All there is to say about a visible part."""
    if isinstance(error, DeadlockError):
        return error.reason
    if isinstance(error, RankError):
        return error.sentence + ("\n\n" + error.traceback.strip() if error.traceback else "")
    if isinstance(error, LaunchError):
        return error.sentence
    if isinstance(error, NotebookError):
        return str(error)
    if isinstance(error, AssertionError):
        return str(getattr(error, "message", None) or error) or "a check failed without a message"
    if isinstance(error, (TypeError, AttributeError)) and "NoneType" in str(error):
        return f"{_returned_none()} ({type(error).__name__}: {error})"
    return f"the test could not use what your function returned: {type(error).__name__}: {error}"


def _returned_none() -> str:
    last = " and ".join(sorted(StandIn.named))
    ran = f"; the last launch ran {last}" if last else ""
    return (
        f"there is None where the test needs a value{ran}: does every way through your function "
        "end in a return?"
    )


def _hidden_message(error: BaseException) -> str:
    """How a hidden part ended: one of a few sentences, whichever ranks, calls and signals it was.

    Two inputs that end alike are told alike, so that no rank can say by its end what it was given.
    """
    if (kind := _kind(error)) in _HIDDEN_ENDS:
        return _HIDDEN_ENDS[kind]
    if isinstance(error, RankError) and error.exception in _ON_RANKS:
        return _ON_RANKS[error.exception]
    if isinstance(error, RankError):
        return "a rank raised an exception"
    if isinstance(error, NotebookError):
        return "the notebook does not define what the test needs, or it cannot travel to a rank"
    if isinstance(error, AssertionError):
        from byhand.check.differences import NAN  # with torch, which a check has loaded already

        nan = ": there is a nan among them" if NAN in str(error) else ""
        return f"{_ASKED[getattr(error, 'of', 'values')]} not what the statement asks for{nan}"
    return "a function did not return what the statement asks for: another type, or None"


def _line_of(error: BaseException, filename: str) -> int:
    """The line of the test cell itself (not of a helper it calls) at which `error` came up."""
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == filename:
            return frame.lineno or 0
    return 0


def _is_hidden(source: str, line: int) -> bool:
    """Whether a line lies between the markers of hidden tests; an unknown line counts as hidden."""
    if line == 0:
        return HIDDEN in source
    inside = False
    for text in source.splitlines()[:line]:
        inside = HIDDEN in text or (inside and END_HIDDEN not in text)
    return inside
