"""What stands around the ranks of one question: namespaces of its own, and limits.

`Walls` is a value: a launcher hands it to its fork server, which forks one more of its kind that
enters them; the ranks forked there keep to them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psutil

from byhand.runtime.process.member import read_all
from byhand.runtime.process.place import Place
from byhand.runtime.process.world import choose_backend
from byhand.runtime.walls import codec, namespaces
from byhand.runtime.walls.notebook import unpack

if TYPE_CHECKING:
    from byhand.runtime.walls.cgroup import Cgroup

SCRATCH_BYTES = 256 << 20
_LIMITS = {
    "memory_bytes": resource.RLIMIT_DATA,
    "processes": resource.RLIMIT_NPROC,
    "file_bytes": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}


@dataclass
class Walls(Place):
    """With `isolate`, new user, process, network, mount and IPC namespaces for the question, with
    an empty /tmp.

    `limits` bound each rank: memory_bytes, processes (with threads), file_bytes, open_files,
    output_bytes, log_bytes; and all ranks together: scratch_bytes in /tmp, reply_bytes and, where
    they are isolated, as many times memory_bytes as there are ranks. In the judge alone, a `cgroup`
    weighs also what no process shows.
    """

    trusted = False
    isolate: bool = True
    limits: Mapping[str, int] = field(default_factory=dict)
    look_seconds: float | None = 0.05
    cgroup: Cgroup | None = None
    held_before: int = 0

    def enter(self) -> Walls:
        """As a place does."""
        if self.isolate:
            namespaces.enter(self.limits.get("scratch_bytes", SCRATCH_BYTES))
        return self

    def weigh(self, world_size: int) -> None:
        """As a place does, with all that they started.

        A limit on memory binds one process, and only what is its own.
        """
        most = self.limits.get("memory_bytes", 0) * world_size
        if self.isolate and most and _held() + _segments() > most:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)

    def overweight(self, world_size: int) -> str:
        """In the judge: what the ranks hold together that the kernel counts, if it is too much."""
        most = self.limits.get("memory_bytes", 0) * world_size
        held = (self.cgroup.held() or 0) - self.held_before if self.cgroup and most else 0
        if held <= most:
            return ""
        return f"the ranks together held {held:,} bytes of memory, more than {most:,}"

    def count(self) -> dict[str, Any]:
        """In the fork server: bytes that a loopback of the question's own has carried."""
        if not self.isolate:
            return {}
        ports = psutil.net_io_counters(pernic=True, nowrap=False)
        return {"loopback_bytes": ports["lo"].bytes_sent}

    def counted(self, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
        """As a place does."""
        return {name: after[name] - before[name] for name in before}

    def backend(self, backend: str, world_size: int) -> str:
        """As a place does: on the CPU."""
        return choose_backend(backend, world_size, gpus=0)

    def close_in(self, rank: int, world_size: int) -> None:
        """On a rank: limits. One user's processes count together, and so do all ranks'."""
        if self.isolate:
            os.setsid()  # the kernel shares time out by session: a flood of processes gets one
        for name in _LIMITS.keys() & self.limits:
            limit = self.limits[name] * (world_size if name == "processes" else 1)
            resource.setrlimit(_LIMITS[name], (limit, limit))

    def load(self, data: bytes) -> Any:
        """On a rank: the call in what a QuestionLauncher made, where the notebook is."""
        notebook, call = pickle.loads(data)
        if notebook:
            unpack(notebook)
        return pickle.loads(call)

    def dump(self, value: Any, fd: int) -> None:
        """On a rank: plain data and tensors alone, which the judge reads without running anything.

        Raises:
            TypeError: it is something else, or longer than a file may be.
        """
        try:
            with open(fd, "wb", closefd=False) as file:
                file.write(codec.encode(value))
        except (codec.CodecError, OSError) as error:
            raise TypeError(f"what the function returned cannot be graded: {error}") from None

    def value(self, fd: int, at: int) -> Any:
        """In the judge: what `dump` wrote. It is copied first: it may change.

        Raises:
            CodecError: it is no value.
        """
        return codec.decode(read_all(fd, os.fstat(fd).st_size, at))


def _segments() -> int:
    """Bytes of the System V segments of this IPC namespace, which outlive who made them."""
    with contextlib.suppress(FileNotFoundError), open("/proc/sysvipc/shm") as file:
        return sum(int(number) for row in [*file][1:] for number in row.split()[-2:])
    return 0


def _held() -> int:
    """Bytes of memory of all processes below this one.

    What a process had from this one when it was forked weighs nothing. One file for each process
    is read: psutil, which reads four, took most of a flooded processor.
    """
    here, parents, held = int(os.readlink("/proc/self")), {}, {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
            parents[int(process)] = int(fields[1])
            held[int(process)] = int(fields[21]) * resource.getpagesize()
    below, more = set(), {here}
    while more:
        more = {child for child, parent in parents.items() if parent in more} - below
        below |= more
    return sum(max(0, held[process] - held[here]) for process in below)
