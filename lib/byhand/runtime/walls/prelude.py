"""A student's notebook cells, run on each rank of a sandbox before the judge's driver.

The driver names the student's functions through stand-ins: objects that the judge's kernel holds
in place of the functions, and that become the functions when the driver arrives on a rank.
"""

from __future__ import annotations

import ast
import asyncio
import faulthandler
import inspect
import os
import signal
import time
from typing import Any

from byhand.runtime.walls.cells import runnable

CELL_SECONDS = 5.0
ALL_SECONDS = 30.0  # of all cells together: one that would begin later is not run
NOT_BEGUN = "CellTimeout: not begun in time, nor was any cell after it"
PATIENCE = 0.5  # for a cell that is interrupted

_namespace: dict[str, Any] = {}
_notes: list[str] = []


class StandIn:
    """A student's name in the judge's kernel: worth something only inside a driver."""

    def __init__(self, name: str):
        self._name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return (look_up, (self._name,))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"{self._name} runs only on ranks: call it in a function given to launch or call"
        )

    def __repr__(self) -> str:
        return f"<{self._name}, the submission's>"


class CellTimeout(BaseException):
    """A cell took longer than CELL_SECONDS; not an Exception, so that few handlers swallow it."""


def look_up(name: str) -> Any:
    """The student's object of this name, on a rank.

    Raises:
        NameError: no cell defined it; the message says which cells failed.
    """
    if name in _namespace:
        return _namespace[name]
    why = f" ({'; '.join(_notes)})" if _notes else ""
    raise NameError(f"the notebook does not define {name}{why}")


def run(cells: list[list[str]]) -> list[str]:
    """Run (label, source) cells in one fresh namespace; return a note for each that failed.

    Those whose turn comes after ALL_SECONDS are not run; the first of them has a note.
    """
    _namespace.clear()
    _namespace["__name__"] = "__main__"
    _notes.clear()
    end = time.monotonic() + ALL_SECONDS
    for label, source in cells:
        if time.monotonic() > end:
            _notes.append(f"cell {label}: {NOT_BEGUN}")
            break
        try:
            code = compile(runnable(source), f"<{label}>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            _timed(code)
        except (Exception, CellTimeout, SystemExit) as error:
            _notes.append(f"cell {label}: {type(error).__name__}: {error}"[:500])
    return list(_notes)


def _timed(code: Any) -> None:
    def stop(*_: Any) -> None:
        raise CellTimeout(f"stopped after {CELL_SECONDS:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    with open(os.devnull, "w") as nowhere:  # a cell that swallows the interrupt ends its process
        faulthandler.dump_traceback_later(CELL_SECONDS + PATIENCE, exit=True, file=nowhere)
        signal.setitimer(signal.ITIMER_REAL, CELL_SECONDS, 0.1)
        try:
            if inspect.iscoroutine(waiting := eval(code, _namespace)):
                asyncio.run(waiting)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            faulthandler.cancel_dump_traceback_later()
