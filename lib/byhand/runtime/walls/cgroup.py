"""The kernel's own account of what a sandbox holds: a memory cgroup, where one may be made.

It knows what no process shows: files in memory without a name, also of a process that has ended.
Root may make one on most machines, other users where their session was given a part of the tree.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT, MARK = Path("/sys/fs/cgroup"), "byhand-"
_ENTER = 'echo $$ >"$0" && exec "$@"'  # a shell's: it moves itself there, and becomes the command
_COUNTED = ("anon", "shmem", "total_rss", "total_shmem")  # in memory.stat, of version 2 and 1


class Cgroup:
    """An empty cgroup, until `close`."""

    def __init__(self, folder: Path):
        self.folder = folder

    @classmethod
    def make(cls) -> Cgroup | None:
        """A new one, or None where the kernel or its administrator gives none."""
        for parent in _parents():
            _sweep(parent)
            folder = parent / f"{MARK}{os.getpid()}-{uuid.uuid4().hex[:12]}"
            with contextlib.suppress(OSError):
                folder.mkdir()
                made = cls(folder)
                if made.held() is not None and _enters(made):
                    return made
                made.close()
        return None

    @property
    def command(self) -> list[str]:
        """What to put before a command, so that it and all that it starts are counted here."""
        return ["/bin/sh", "-c", _ENTER, str(self.folder / "cgroup.procs")]

    def held(self) -> int | None:
        """Bytes of memory that cannot be had back from the processes in it; None: not counted."""
        try:
            rows = (self.folder / "memory.stat").read_text().splitlines()
        except OSError:
            return None
        numbers = {name: int(number) for name, number in (row.split() for row in rows)}
        return sum(numbers[name] for name in _COUNTED if name in numbers)

    def close(self) -> None:
        """Remove it; if anything still runs in it, the next one who makes one does."""
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def _parents() -> Iterator[Path]:
    """Where one may be made: of version 1 below this process's own, of version 2 above it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, inside = line.split(":", 2)
            if "memory" in controllers.split(","):
                yield ROOT / "memory" / inside.lstrip("/")
                yield ROOT / "memory"
            elif not controllers:
                inner = ROOT / inside.lstrip("/")
                for folder in (inner, *inner.parents):
                    control = folder / "cgroup.subtree_control"
                    if control.exists() and "memory" in control.read_text().split():
                        yield folder


def _enters(made: Cgroup) -> bool:
    """Whether a process may be moved there: one that ends at once is."""
    return not subprocess.run([*made.command, "/bin/true"], capture_output=True).returncode


def _sweep(parent: Path) -> None:
    """Remove what processes left that were killed: one that runs may not have entered its own."""
    for folder in parent.glob(f"{MARK}*"):
        maker = folder.name.removeprefix(MARK).partition("-")[0]
        if not (maker.isdecimal() and psutil.pid_exists(int(maker))):
            with contextlib.suppress(OSError):
                folder.rmdir()
