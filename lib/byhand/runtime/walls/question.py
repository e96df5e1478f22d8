"""What stands around the ranks of one question, and around a notebook: namespaces and limits.

`Walls` is a value: a launcher hands it to its fork server, which forks one more of its kind that
enters them; the ranks forked there keep to them. `Sandbox` is the launcher that a judge uses.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psutil
import torch

from byhand.runtime.errors import LaunchError
from byhand.runtime.launcher import Launcher
from byhand.runtime.process.client import ForkClient
from byhand.runtime.process.rank import Open
from byhand.runtime.process.world import choose_backend
from byhand.runtime.trace.log import LogWriter
from byhand.runtime.trace.memory import HeldBytes
from byhand.runtime.trace.recorder import Recorder
from byhand.runtime.walls import namespaces, on_gpu, seccomp, weight
from byhand.runtime.walls.gpus import NO_GPUS, Gpus
from byhand.runtime.walls.notebook import Notebook, StandIn, unpack

SCRATCH_BYTES = 64 << 20
_LIMITS = {
    "memory_bytes": resource.RLIMIT_DATA,
    "address_bytes": resource.RLIMIT_AS,
    "processes": resource.RLIMIT_NPROC,
    "file_bytes": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
    "cpu_seconds": resource.RLIMIT_CPU,
}


@dataclass
class Walls(Open):
    """With `isolate`, new user, process, network, mount and IPC namespaces for the question, and
    an empty /tmp of its own for each rank.

    `limits` bound each rank: memory_bytes, address_bytes, processes (with threads), file_bytes,
    open_files, cpu_seconds, output_bytes, log_bytes, reply_bytes, scratch_bytes; all ranks of a
    launch together, with what they start, hold no more than their memory_bytes together, and
    return no more than one's reply_bytes. `gpus`: what ranks have of them, and so what "auto"
    means; ranks with a limit device_bytes keep their tensors there.
    """

    isolate: bool = True
    limits: Mapping[str, int] = field(default_factory=dict)
    gpus: Gpus = NO_GPUS
    look_seconds: float | None = 0.05

    def __post_init__(self) -> None:
        self.device: torch.device | None = None

    def enter(self) -> Walls:
        """In a forked fork server: move there.

        Raises:
            OSError: the kernel refuses; the message says which step.
        """
        if self.isolate:
            namespaces.enter(SCRATCH_BYTES)
        return self

    def weigh(self, world_size: int) -> None:
        """Kill so many ranks, and all that they started, if they hold more memory than they may.

        A limit on memory binds one process, and only what is its own.
        """
        most = self.limits.get("memory_bytes", 0) * world_size
        if not most or "device_bytes" in self.limits:  # CUDA maps as much as the GPUs hold
            return
        held, below = weight.held()
        if self.isolate:
            held += weight.num_sockets() * 2 * namespaces.BUFFER_BYTES
        if held <= most:
            return
        for process in [-1] if self.isolate else below:  # behind walls -1 is all there is, and
            with contextlib.suppress(ProcessLookupError):  # has other numbers than in /proc
                os.kill(process, signal.SIGKILL)

    def count(self) -> dict[str, Any]:
        """Bytes that the question's loopback has carried; nothing where it is the machine's."""
        if not self.isolate:
            return {}
        return {
            "loopback_bytes": psutil.net_io_counters(pernic=True, nowrap=False)["lo"].bytes_sent
        }

    def counted(self, before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, Any]]:
        """What two counts tell of the run between them, by the names of Run's fields."""
        return [(name, after[name] - before[name]) for name in before]

    def backend(self, backend: str, world_size: int) -> str:
        """The backend of a launch that asks for this one.

        Raises:
            ValueError: it cannot run here. LaunchError: nobody asked for what cannot.
        """
        if backend != "auto":
            return choose_backend(backend, world_size, self.gpus.count)
        try:
            return choose_backend(self.gpus.backend, world_size, self.gpus.count)
        except ValueError as error:
            raise LaunchError(str(error)) from None

    def close_in(self, rank: int, world_size: int, kept: list[int]) -> None:
        """On a rank: limits, namespaces of its own, no calls that would get around them.

        One user's processes count together: all ranks', until a rank has its own user namespace.
        """
        _limit({**self.limits, "processes": self.limits.get("processes", 0) * world_size})
        if self.isolate:
            _close_all_but(kept)
            os.setsid()  # the kernel shares time out by session: a flood of processes gets one
            namespaces.enter_alone(self.limits.get("scratch_bytes", SCRATCH_BYTES))
            _limit({"processes": self.limits.get("processes", 0)})
        if "memory_bytes" in self.limits:
            seccomp.forbid(gpu="device_bytes" in self.limits)
        self.device = on_gpu.taken(rank, self.limits)

    def load(self, data: bytes) -> Any:
        """On a rank: the call in what a Question made, tensors on its device."""
        notebook, call = pickle.loads(data)
        with on_gpu.placed(self.device):
            if notebook:
                unpack(notebook, self.device)
            return on_gpu.loads(call, self.device)

    @contextlib.contextmanager
    def recorded(self, log: LogWriter, memory: HeldBytes | None) -> Iterator[None]:
        """On a rank: what the function runs in."""
        kind = Recorder if self.device is None else on_gpu.Staging
        with on_gpu.placed(self.device), kind(log, memory):
            yield


def _limit(limits: Mapping[str, int]) -> None:
    """Set this process's limits; one of 0 is none."""
    for name, value in limits.items():
        if name in _LIMITS and value:
            resource.setrlimit(_LIMITS[name], (value, value))


def _close_all_but(kept: list[int]) -> None:
    """Close what the fork server had open: its ranks would share it."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor not in kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)


class Sandbox(Launcher):
    """A launcher for code that nobody has read: each `fresh` one stands behind walls of its own."""

    def __init__(
        self, command: Sequence[str] = (), *, trusted: bool = False, gpus: Gpus | None = None
    ):
        super().__init__(command, trusted=trusted)
        self.gpus = gpus or NO_GPUS

    def fresh(
        self,
        *,
        isolate: bool = True,
        notebook: Notebook | None = None,
        limits: Mapping[str, int] | None = None,
        seconds: float | None = None,
    ) -> Question:
        """A launcher for one question, in milliseconds: `isolate` and `limits` are those of Walls.

        Raises:
            SandboxError: the kernel refuses the namespaces.
        """
        walls = Walls(isolate, limits or {}, self.gpus)
        return Question(self.client_behind(walls), walls, notebook, self.trusted, seconds)

    def why_no_gpus(self, limits: Mapping[str, int], isolate: bool) -> str | None:
        """None where ranks with these limits can use the GPUs, or there are none; else why not.

        It is tried, behind the walls of a question.
        """
        for ranks in self.gpus.trials:
            question = self.fresh(isolate=isolate, limits=limits)
            try:
                question.launch(on_gpu.probe, ranks, (self.gpus.count, limits["device_bytes"]))
            except LaunchError as error:
                return error.sentence
            finally:
                question.close()
        return None


class Question(Launcher):
    """Launches behind the walls of one question, of functions that name a notebook's.

    All its launches together take no more than `seconds`, of those that its ranks really had.
    """

    def __init__(
        self,
        client: ForkClient,
        walls: Walls,
        notebook: Notebook | None,
        trusted: bool,
        seconds: float | None,
    ):
        super().__init__(trusted=trusted)
        self._client, self.walls, self.notebook, self.left = client, walls, notebook, seconds

    def pickled(self, fn: Callable[..., Any], world_size: int, args: Sequence[Any]) -> list[bytes]:
        """The call, with all that it names of the notebook, as Walls.load reads it.

        Raises:
            NotebookError: it names what is not there, or cannot travel.
        """
        with StandIn.named() as names:
            calls = super().pickled(fn, world_size, args)
        brought = self.notebook.packed(sorted(names)) if names and self.notebook else b""
        packed = {id(call): pickle.dumps((brought, call)) for call in calls}
        return [packed[id(call)] for call in calls]

    @property
    def cells(self) -> dict[str, str]:
        """Texts that errors may show, by label."""
        return self.notebook.cells if self.notebook else {}
