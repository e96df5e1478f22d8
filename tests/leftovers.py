"""Looks for what a test session left behind: processes, and shared-memory segments.

A process belongs to the session when it inherited the session's mark in its environment, or, where
a sandbox cleared that, when it is one of the runtime's and nobody outside the runtime is its parent
any more. So a second session on the same machine is never blamed.
"""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

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
    return mark, set(_pids()), segments()


def processes(mark: str, before: set[int] = frozenset(), patience: float = 3.0) -> list[str]:
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
    held = "\n".join(_read(pid, "maps") + _open_files(pid) for pid in _pids())
    return sorted(name for name, path in new.items() if path not in held)


def _alive(mark: str, before: set[int]) -> list[str]:
    found = []
    for pid in _pids():
        if pid == os.getpid() or _state(pid) in "ZX" or TRACKER in _command(pid):
            continue
        marked = f"{MARK}={mark}" in _read(pid, "environ").split("\0")
        if marked or (pid not in before and _is_orphan_of_the_runtime(pid)):
            found.append(f"{pid} {_command(pid)}")
    return found


def _is_orphan_of_the_runtime(pid: int) -> bool:
    """Whether `pid` is a fork server or a rank that no living Python program started."""
    if RUNTIME not in _command(pid):
        return False
    while pid > 1 and (RUNTIME in _command(pid) or "bwrap" in _command(pid)):
        pid = int(_stat(pid)[1])
    return pid <= 1 or "python" not in _command(pid)  # init, or another adopter of orphans


def _pids() -> list[int]:
    names = os.listdir("/proc") if os.path.isdir("/proc") else []
    return [int(name) for name in names if name.isdigit()]


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _command(pid: int) -> str:
    return _read(pid, "cmdline").replace("\0", " ").strip()


def _stat(pid: int) -> list[str]:
    """The fields after the name: state, parent, ...; a process that just ended counts as dead."""
    return _read(pid, "stat").rpartition(")")[2].split() or ["X", "0"]


def _state(pid: int) -> str:
    return _stat(pid)[0]


def _open_files(pid: int) -> str:
    try:
        links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
    except OSError:
        return ""
    return "\n".join(links)
