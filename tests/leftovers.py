"""Looks for what a test session left behind: processes, and shared-memory segments.

A process belongs to the session when it inherited the session's mark in its environment, or, where
a sandbox cleared that, when it is one of the runtime's, under this environment's Python, and nobody
outside the runtime is its parent any more. So another session or checkout is never blamed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import uuid
from pathlib import Path

import psutil

MARK = "BYHAND_TEST_SESSION"
SHARED_MEMORY = Path("/dev/shm")
RUNTIME = "byhand.runtime"
TRACKER = "multiprocessing.resource_tracker"  # Python's own; ends with the process it serves


def begin(part_of_a_session: bool = False) -> tuple[str, set[int], set[str]]:
    """Mark this process's future children: the mark, and the pids and segments already there.

    A process that is `part_of_a_session` goes on with the mark that it inherited.
    """
    inherited = os.environ.get(MARK) if part_of_a_session else None
    mark = os.environ[MARK] = inherited or f"{os.getpid()}-{uuid.uuid4().hex}"
    return mark, set(psutil.pids()), segments()


def processes(mark: str, before: set[int] = frozenset(), patience: float = 60.0) -> list[str]:
    """The session's processes still alive after `patience` seconds: "pid command line"."""
    until = time.monotonic() + patience
    while (found := _alive(mark, before)) and time.monotonic() < until:
        time.sleep(0.05)
    return found


def segments() -> set[str]:
    """Names under /dev/shm (empty where the system has no such place)."""
    return set(os.listdir(SHARED_MEMORY)) if SHARED_MEMORY.is_dir() else set()


def abandoned_segments(before: set[str]) -> list[str]:
    """Segments that are new since `before` and that no living process holds."""
    new = {name: str(SHARED_MEMORY / name) for name in segments() - before}
    if not new:
        return []
    held = "\n".join(path for process in psutil.process_iter() for path in _held_by(process))
    return sorted(name for name, path in new.items() if path not in held)


def _held_by(process: psutil.Process) -> list[str]:
    try:
        return [file.path for file in process.memory_maps() + process.open_files()]
    except (psutil.Error, OSError):
        return []


def _alive(mark: str, before: set[int]) -> list[str]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it ended meanwhile
            ended = process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
            if process.pid == os.getpid() or ended or TRACKER in _command(process):
                continue
            theirs = _mark(process)
            unknown = theirs is None and process.pid not in before
            if theirs == mark or (unknown and _is_orphan_of_the_runtime(process)):
                found.append(f"{process.pid} {_command(process)}")
    return found


def _mark(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARK)
    except (psutil.AccessDenied, OSError):
        return None


def _command(process: psutil.Process) -> str:
    return " ".join(process.cmdline())


def _is_orphan_of_the_runtime(process: psutil.Process) -> bool:
    """Whether this is our fork server or rank, and no living Python program started it."""
    if not all(name in _command(process) for name in (sys.executable, RUNTIME)):
        return False
    parent: psutil.Process | None = process
    while parent is not None and any(name in _command(parent) for name in (RUNTIME, "bwrap")):
        parent = parent.parent()
    return parent is None or "python" not in _command(parent)  # init, or another adopter of orphans
