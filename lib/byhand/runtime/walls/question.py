"""Launches of code that nobody has read: `Sandbox` is the launcher that a judge uses.

Each `fresh` launcher is for one question, behind walls of its own (limits.py).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from byhand.runtime.errors import LaunchError
from byhand.runtime.launcher import Launcher
from byhand.runtime.launching import launch_on
from byhand.runtime.process.client import ForkClient
from byhand.runtime.run import Options, Run
from byhand.runtime.walls.cgroup import Cgroup
from byhand.runtime.walls.gpus import NO_GPUS, Gpus
from byhand.runtime.walls.limits import Walls
from byhand.runtime.walls.notebook import Notebook, StandIn
from byhand.runtime.walls.snapshot import Snapshot


class Sandbox(Launcher):
    """Makes launchers for questions. Behind a `command` each has namespaces of its own.

    Without one there are only limits, and what the ranks see is what this process sees.
    """

    def __init__(self, command: Sequence[str] = (), gpus: Gpus = NO_GPUS):
        self.cgroup = Cgroup.make() if command and not gpus.count else None
        super().__init__([*(self.cgroup.command if self.cgroup else ()), *command])
        self.gpus = gpus
        self.isolate = bool(command)

    def fresh(
        self,
        *,
        notebook: Notebook | Snapshot | None = None,
        limits: Mapping[str, int] | None = None,
        seconds: float | None = None,
    ) -> QuestionLauncher:
        """A launcher for one question, in milliseconds: `limits` are those of Walls.

        Raises:
            SandboxError: the kernel refuses the namespaces.
        """
        if self.gpus.count:
            from byhand.runtime.walls.on_gpu import GpuWalls

            walls: Walls = GpuWalls(self.isolate, limits or {}, gpus=self.gpus)
        else:
            walls = Walls(self.isolate, limits or {})
        client = self.client_in(walls)
        if self.cgroup:
            walls = replace(walls, cgroup=self.cgroup, held_before=self.cgroup.held() or 0)
        return QuestionLauncher(client, walls, notebook, seconds)

    def start(self) -> None:
        """Start the fork server, in the cgroup, unless it runs."""
        if self.cgroup:
            self.cgroup.folder.mkdir(exist_ok=True)  # `close` removed it
        super().start()

    def close(self) -> None:
        """End every process, and the cgroup they were counted in."""
        super().close()
        if self.cgroup:
            self.cgroup.close()

    def why_no_gpus(self, limits: Mapping[str, int]) -> str | None:
        """None where ranks with these limits can use the GPUs, or there are none; else why not.

        It is tried, behind the walls of a question.
        """
        if not self.gpus.count:
            return None
        from byhand.runtime.walls.on_gpu import probe

        try:
            with self.fresh(limits=limits) as question:
                launch_on(question, probe, self.gpus.trial, (limits["device_bytes"],))
        except LaunchError as error:
            return error.sentence
        return None


class QuestionLauncher(Launcher):
    """Launches behind the walls of one question, of functions that name a notebook's.

    All its launches together take no more than `seconds`, of those that its ranks really had.
    `runs`: what each gave back, without results and output.
    """

    def __init__(
        self,
        client: ForkClient,
        walls: Walls,
        notebook: Notebook | Snapshot | None,
        seconds: float | None,
    ):
        cells = notebook.cells if notebook else {}
        super().__init__(client=client, place=walls, left=seconds, cells=cells)
        self.notebook = notebook
        self.runs: list[Run] = []

    def run(self, world_size: int, asked: Options, pickled: Callable[[], list[bytes]]) -> Run:
        """As Launcher.run: with the call goes all that it names of the notebook, for Walls.load.

        Raises:
            NotebookError: it names what is not there, or cannot travel.
        """
        run = super().run(world_size, asked, lambda: self._brought(pickled))
        self.runs.append(replace(run, results=[None] * world_size, output=[]))  # may be large
        return run

    def _brought(self, pickled: Callable[[], list[bytes]]) -> list[bytes]:
        StandIn.named.clear()
        calls, names = pickled(), sorted(StandIn.named)
        brought = self.notebook.packed(names) if names and self.notebook else b""
        packed = {id(call): pickle.dumps((brought, call)) for call in calls}
        return [packed[id(call)] for call in calls]
