"""What the fork server keeps of one launch, and what it asks the kernel about processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from byhand.runtime.trace.log import new_file

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Team:
    """The processes of one launch, or one fresh fork server."""

    world_size: int = 0
    ranks: dict[int, int] = field(default_factory=dict)  # process id -> rank
    port: socket.socket | None = None  # a free one, kept for a store of the program's own
    store: int = -1  # a memory file in which the ranks find each other

    def prepare(self, world_size: int) -> None:
        """Reserve what the ranks of a launch share, before the first of them is forked."""
        if self.port is None:
            self.world_size = world_size
            self.port, self.store = free_port(), new_file("byhand store")

    def close(self) -> None:
        """Give back what was reserved."""
        if self.port is not None:
            self.port.close()
            os.close(self.store)


def free_port() -> socket.socket:
    """A free TCP port, kept from others but open to a rank's store, which listens on it."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process."""
    _libc.prctl(option, value, 0, 0, 0)


def children() -> dict[int, int]:
    """Process ids of this process's children, and what /proc calls them.

    In a process namespace below the one that /proc was mounted for, it has other numbers.
    """
    me = int(os.readlink("/proc/self"))
    listed = Path(f"/proc/self/task/{me}/children")  # a hundred times faster
    if listed.exists():
        names = list(map(int, listed.read_text().split()))
    else:
        names = [child.pid for child in psutil.Process(me).children()]
    if me == os.getpid():
        return dict(zip(names, names, strict=True))
    found = {}
    for name in names:
        with contextlib.suppress(OSError):  # it has ended
            status = Path(f"/proc/{name}/status").read_text()
            found[int(status.partition("\nNSpid:")[2].split("\n")[0].split()[-1])] = name
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time a process has used (the kernel's clock number for a process is made from its id)."""
    return time.clock_gettime((~pid << 3) | 2)


def waited_seconds(name: int) -> float:
    """How long the first thread of process `name` (in /proc) could run and was not let to."""
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{name}/schedstat").read_text().split()[1]) / 1e9
    return 0.0
